// The table of all flags that have an effect here.
#include <viaduct/transfer.h>

#include <array>

#include "viaduct/bench_options.h"
#include "viaduct/bench_values.h"

namespace viaduct::app {
namespace {

using O = BenchOptions;
using V = std::string_view;

constexpr base::Words<OpKind, 2> kOps{{{"WRITE", OpKind::kWrite}, {"READ", OpKind::kRead}}};
constexpr base::Words<OutputForm, 4> kBenchOutputs{{{"table", OutputForm::kTable},
                                                    {"nixlbench", OutputForm::kNixlbench},
                                                    {"json", OutputForm::kJson},
                                                    {"csv", OutputForm::kCsv}}};
constexpr base::Words<bool, 2> kArrivals{{{"constant", false}, {"poisson", true}}};
constexpr base::Words<V, 2> kRuntimes{{{"ETCD", "ETCD"}, {"ASIO", "ASIO"}}};
constexpr base::Words<V, 2> kSegments{{{"DRAM", "DRAM"}, {"VRAM", "VRAM"}}};

Status intoSegment(V text, std::string& into) {
  V word;
  VIADUCT_CHECK(intoOneOf(text, kSegments, word));
  into = word;
  return Ok{};
}

Status intoLinkRates(V text, O& into) {
  std::vector<std::string> words;
  VIADUCT_CHECK(intoWords(text, words));
  into.spec.link_rates.clear();
  for (const std::string& word : words) {
    VIADUCT_TRY(measure::LinkRate rate, measure::parseLinkRate(word));
    into.spec.link_rates.push_back(std::move(rate));
  }
  return Ok{};
}

// Parses the flag and ignores it, because viaduct always works as it asks.
Status alreadySo(V text, O& /*into*/) {
  bool asked = false;
  return intoYesNo(text, asked);
}

constexpr std::array kWhat{
    BenchFlag{"backend", "NAME,...", "VIADUCT_BACKENDS, or local,tcp; nixlbench: UCX",
              "backends to measure; a transfer over any other backend is an error",
              [](V t, O& o) { return intoWords(t, o.backends); }},
    BenchFlag{"op_type", "WRITE|READ", "WRITE", "direction of the transfers, as initiators see it",
              [](V t, O& o) { return intoOneOf(t, kOps, o.op); }},
    BenchFlag{"op", "write|read", "write", "alias of op_type",
              [](V t, O& o) { return intoOneOf(t, kOps, o.op); }},
    BenchFlag{"block_sizes", "SIZE,...",
              "4K, 16K, 64K and so on to 64M; nixlbench: doubled from start_block_size",
              "block sizes: 64K, 65536, 1MiB (1MB is 10^6)",
              [](V t, O& o) { return intoSizes(t, o.block_sizes); }},
    BenchFlag{"start_block_size", "SIZE", "4096", "first block size; each row doubles it",
              [](V t, O& o) { return intoSize(t, o.start_block_size); }},
    BenchFlag{"max_block_size", "SIZE", "67108864", "last block size",
              [](V t, O& o) { return intoSize(t, o.max_block_size); }},
    BenchFlag{"batch", "N",
              "64, or fewer to stay at 64 MiB; nixlbench: doubled from start_batch_size",
              "blocks per transfer", [](V t, O& o) { return intoCount(t, 1, o.batch); }},
    BenchFlag{"start_batch_size", "N", "1", "first batch size; each row doubles it",
              [](V t, O& o) { return intoCount(t, 1, o.start_batch_size); }},
    BenchFlag{"max_batch_size", "N", "1", "last batch size",
              [](V t, O& o) { return intoCount(t, 1, o.max_batch_size); }},
    BenchFlag{"memory", "allocate|malloc", "allocate",
              "allocate: memory from the agent, which peers on this host can map; malloc: ordinary "
              "memory",
              [](V t, O& o) { return intoOneOf(t, measure::kMemoryChoices, o.spec.memory); }},
    BenchFlag{"initiator_seg_type", "DRAM|VRAM", "DRAM",
              "memory type; this version moves DRAM only",
              [](V t, O& o) { return intoSegment(t, o.initiator_seg_type); }},
    BenchFlag{"target_seg_type", "DRAM|VRAM", "DRAM", "memory type; this version moves DRAM only",
              [](V t, O& o) { return intoSegment(t, o.target_seg_type); }},
    BenchFlag{"use_hugepages", "", "false", "use 2 MiB pages",
              [](V t, O& o) { return intoYesNo(t, o.spec.huge_pages); }},
    BenchFlag{"total_buffer_size", "SIZE", "as much as the rows need; nixlbench: 8 GiB",
              "memory per process, divided among its devices and their streams",
              [](V t, O& o) { return intoSize(t, o.spec.buffer_bytes); }},
    BenchFlag{"hot", "", "true", "each stream reuses one set of blocks",
              [](V t, O& o) -> Status {
                bool hot = false;
                VIADUCT_CHECK(intoYesNo(t, hot));
                o.cold = !hot;
                return Ok{};
              }},
    BenchFlag{
        "cold", "", "false",
        "each transfer uses other blocks, from four times the CPU caches or from total_buffer_size",
        [](V t, O& o) -> Status {
          bool cold = false;
          VIADUCT_CHECK(intoYesNo(t, cold));
          o.cold = cold;
          return Ok{};
        }},
    BenchFlag{"working_set", "SIZE", "", "memory that the transfers of a stream cycle through",
              [](V t, O& o) { return intoSize(t, o.working_set); }},
    BenchFlag{"device_list", "NAME,...", "all",
              "interfaces, source addresses or RDMA devices to use; all lets the backend choose",
              [](V t, O& o) { return intoWords(t, o.device_list); }},
    BenchFlag{"seed", "N", "1", "random seed for contents, block order and Poisson arrivals",
              [](V t, O& o) { return intoCount(t, 0, o.spec.seed); }},
};

constexpr std::array kWho{
    BenchFlag{"scheme", "pairwise|manytoone|onetomany|tp", "pairwise",
              "pairing of initiators and targets",
              [](V t, O& o) { return intoOneOf(t, measure::kSchemes, o.spec.layout.scheme); }},
    BenchFlag{"mode", "SG|MG", "SG",
              "SG: one process per device; MG: one process for all devices of a side",
              [](V t, O& o) { return intoOneOf(t, measure::kModes, o.spec.layout.mode); }},
    BenchFlag{"num_initiator_dev", "N", "1", "number of initiator devices",
              [](V t, O& o) { return intoCount(t, 1, o.spec.layout.initiators); }},
    BenchFlag{"num_target_dev", "N", "1", "number of target devices",
              [](V t, O& o) { return intoCount(t, 1, o.spec.layout.targets); }},
    BenchFlag{"local_workers", "N", "as many as the devices need",
              "run N workers, all on this machine",
              [](V t, O& o) { return intoCount(t, 2, o.local_workers); }},
    BenchFlag{"num_threads", "N", "1", "threads per pair, each with its own transfers",
              [](V t, O& o) { return intoCount(t, 1, o.spec.threads); }},
    BenchFlag{"pipeline_depth", "N", "1", "transfers in flight per thread",
              [](V t, O& o) { return intoCount(t, 1, o.spec.depth); }},
    BenchFlag{"bidirectional", "", "false",
              "move as much data in the other direction at the same time",
              [](V t, O& o) { return intoYesNo(t, o.spec.bidirectional); }},
    BenchFlag{"latency", "", "false", "measure ping-pong: half the time of a write and its echo",
              [](V t, O& o) { return intoYesNo(t, o.spec.ping_pong); }},
    BenchFlag{"recreate_xfer", "", "false", "plan each transfer again",
              [](V t, O& o) { return intoYesNo(t, o.spec.recreate); }},
    BenchFlag{"reregister_mem", "", "false", "register the memory again for each transfer",
              [](V t, O& o) { return intoYesNo(t, o.spec.reregister); }},
    BenchFlag{"prepared_xfer", "", "false", "plan transfers once (always on)",
              [](V t, O& o) { return intoYesNo(t, o.prepared_xfer); }},
    BenchFlag{"enable_pt", "", "false", "use a progress thread (always on)", alreadySo},
    BenchFlag{"progress_threads", "N", "0", "ignored: every agent has one progress thread",
              [](V t, O&) {
                std::uint32_t count = 0;
                return intoCount(t, 0, count);
              }},
};

constexpr std::array kHowLong{
    BenchFlag{"iterations", "N", "as many as fit in 0.4 s; nixlbench: num_iter",
              "timed transfers per pair", [](V t, O& o) { return intoCount(t, 1, o.iterations); }},
    BenchFlag{
        "num_iter", "N", "1000",
        "timed transfers per pair, rounded up to a multiple of num_threads x large_blk_iter_ftr",
        [](V t, O& o) { return intoCount(t, 1, o.num_iter); }},
    BenchFlag{"large_blk_iter_ftr", "N", "16",
              "divide num_iter and warmup_iter by N for blocks above 1 MiB",
              [](V t, O& o) { return intoCount(t, 1, o.large_blk_iter_ftr); }},
    BenchFlag{"duration", "TIME", "", "time each row for this long: 2s, 500ms, 60 (seconds)",
              [](V t, O& o) -> Status {
                VIADUCT_CHECK(intoTime(t, o.duration));
                if (o.duration == o.duration.zero())
                  return wrongValue("the duration is 0", "use 1ms or more");
                return Ok{};
              }},
    BenchFlag{"warmup", "TIME", "50ms; nixlbench: warmup_iter", "warm-up time before each row",
              [](V t, O& o) { return intoTime(t, o.warmup); }},
    BenchFlag{"warmup_iter", "N", "100", "warm-up transfers before each row, rounded like num_iter",
              [](V t, O& o) { return intoCount(t, 0, o.warmup_iter); }},
    BenchFlag{"repeat", "N", "1", "time each row N times",
              [](V t, O& o) { return intoCount(t, 1, o.spec.repeat); }},
    BenchFlag{"rate", "PER_SECOND", "",
              "open loop: each thread starts this many transfers per second, even while earlier "
              "ones run; latency counts from the intended start",
              [](V t, O& o) { return intoRate(t, o.spec.rate); }},
    BenchFlag{"arrivals", "constant|poisson", "constant", "spacing of the starts that --rate sets",
              [](V t, O& o) { return intoOneOf(t, kArrivals, o.spec.poisson); }},
};

constexpr std::array kChecks{
    BenchFlag{
        "verify", "full|sampled|off", "sampled",
        "full: check every byte of every transfer; sampled: check some of the timed transfers",
        [](V t, O& o) { return intoOneOf(t, measure::kVerifieds, o.verify); }},
    BenchFlag{"check_consistency", "", "false", "alias of --verify full",
              [](V t, O& o) { return intoYesNo(t, o.check_consistency); }},
    BenchFlag{"require", "PATH,...", "",
              "path that every transfer must take: rdma, same-host, not-tcp, backend:NAME, proven",
              [](V t, O& o) { return intoRequire(t, o.spec.require); }},
    BenchFlag{
        "link_rate", "DEVICE=RATE,...", "as the device reports",
        "line rate in bits, if the system reports none or a wrong one: eth0=500Mbit, rail0=100G",
        intoLinkRates},
};

constexpr std::array kMeeting{
    BenchFlag{"meet", "HOST:PORT", "", "address where the workers meet; rank 0 listens there",
              [](V t, O& o) { return intoText(t, o.meet); }},
    BenchFlag{"secret", "WORD", "VIADUCT_SECRET",
              "shared secret of all workers, needed beyond loopback; ps shows the flag, but not "
              "VIADUCT_SECRET",
              [](V t, O& o) { return intoText(t, o.secret); }},
    BenchFlag{"rank", "N", "from the environment, else the next free rank",
              "rank of this worker; initiators have the ranks below num_initiator_dev",
              [](V t, O& o) -> Status {
                std::uint32_t rank = 0;
                VIADUCT_CHECK(intoCount(t, 0, rank));
                o.rank = rank;
                return Ok{};
              }},
    BenchFlag{"etcd_endpoints", "URL,...",
              "with --runtime-type etcd: VIADUCT_MEET, NIXL_ETCD_ENDPOINTS, http://localhost:2379"
              "; nixlbench: VIADUCT_MEET, NIXL_ETCD_ENDPOINTS, http://localhost:2379",
              "etcd where the workers meet",
              [](V t, O& o) { return intoText(t, o.etcd_endpoints); }},
    BenchFlag{"etcd_user", "NAME", "VIADUCT_MEET_USER", "user name for etcd",
              [](V t, O& o) { return intoText(t, o.etcd_user); }},
    BenchFlag{"etcd_password", "WORD", "VIADUCT_MEET_PASSWORD",
              "password for etcd; ps shows the flag, but neither the variable nor a config_file",
              [](V t, O& o) { return intoText(t, o.etcd_password); }},
    BenchFlag{"etcd_ca", "FILE", "VIADUCT_MEET_CA", "CA certificates that verify the etcd server",
              [](V t, O& o) { return intoText(t, o.etcd_ca); }},
    BenchFlag{"etcd_cert", "FILE", "VIADUCT_MEET_CERTIFICATE", "client certificate for etcd",
              [](V t, O& o) { return intoText(t, o.etcd_cert); }},
    BenchFlag{"etcd_key", "FILE", "VIADUCT_MEET_KEY", "private key of the client certificate",
              [](V t, O& o) { return intoText(t, o.etcd_key); }},
    BenchFlag{"benchmark_group", "NAME", "default",
              "name of this run at the meeting place; runs there need different names",
              [](V t, O& o) { return intoText(t, o.benchmark_group); }},
    BenchFlag{"meet_timeout", "TIME", "3m", "time for all workers to join",
              [](V t, O& o) { return intoTime(t, o.meet_timeout); }},
    BenchFlag{"runtime_type", "ETCD|ASIO", "ETCD",
              "ASIO: meet at asio_address:asio_port; ETCD: meet at etcd_endpoints",
              [](V t, O& o) -> Status {
                V word;
                VIADUCT_CHECK(intoOneOf(t, kRuntimes, word));
                o.runtime_type = word;
                return Ok{};
              }},
    BenchFlag{"asio_address", "HOST", "127.0.0.1", "host of the ASIO meeting place",
              [](V t, O& o) { return intoText(t, o.asio_address); }},
    BenchFlag{"asio_port", "PORT", "12345", "port of the ASIO meeting place",
              [](V t, O& o) -> Status {
                VIADUCT_CHECK(intoCount(t, 1, o.asio_port));
                if (o.asio_port > 65535)
                  return wrongValue(fmt::format("port {} is out of range", t), "use 1 to 65535");
                return Ok{};
              }},
};

constexpr std::array kAgainst{
    BenchFlag{"against", "'SETTINGS'", "",
              "compare with the same run under these additional flags and VIADUCT_* assignments",
              [](V t, O& o) { return intoText(t, o.against); }},
    BenchFlag{"rounds", "N", "5", "runs of each side, in turns; they share the time of a row",
              [](V t, O& o) { return intoCount(t, 4, o.rounds); }},
    BenchFlag{"fail_if_slower", "N%", "",
              "exit with 1 if the other side is slower by more than N%, at 95 % confidence",
              [](V t, O& o) -> Status {
                double share = 0;
                VIADUCT_CHECK(intoPercent(t, share));
                o.slower = share;
                return Ok{};
              }},
    BenchFlag{"least_effect", "N%", "1%", "smallest effect to call faster or slower",
              [](V t, O& o) { return intoPercent(t, o.least_effect); }},
};

constexpr std::array kOut{
    BenchFlag{"output", "table|nixlbench|json|csv", "table; nixlbench: nixlbench", "output format",
              [](V t, O& o) -> Status {
                OutputForm form{};
                VIADUCT_CHECK(intoOneOf(t, kBenchOutputs, form));
                o.output = form;
                return Ok{};
              }},
    BenchFlag{"interval", "SECONDS", "",
              "-i for short: print the rate of each interval of a row, as it runs",
              [](V t, O& o) { return intoInterval(t, o.spec.interval); }},
    BenchFlag{"json", "FILE", "", "also write all results to this file",
              [](V t, O& o) { return intoFile(t, o.json); }},
    BenchFlag{"explain", "", "false",
              "measure nothing; list the backends, the chosen one and the reasons",
              [](V t, O& o) { return intoYesNo(t, o.explain); }},
    BenchFlag{"config_file", "FILE", "", "TOML file with flag = value lines; the command line wins",
              [](V t, O& o) { return intoText(t, o.config_file); }},
    BenchFlag{"help", "", "false", "print this help",
              [](V t, O& o) { return intoYesNo(t, o.help); }},
};

constexpr std::array kGroups{FlagGroup{"Data", kWhat},
                             FlagGroup{"Workers", kWho},
                             FlagGroup{"Duration", kHowLong},
                             FlagGroup{"Checks", kChecks},
                             FlagGroup{"Meeting place", kMeeting},
                             FlagGroup{"Comparison", kAgainst},
                             FlagGroup{"Output", kOut}};

}  // namespace

std::span<const FlagGroup> benchFlags() { return kGroups; }

}  // namespace viaduct::app
