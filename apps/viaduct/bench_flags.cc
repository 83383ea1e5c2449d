// The table of all flags that do something here.
#include <viaduct/transfer.h>

#include <array>

#include "viaduct/bench_options.h"
#include "viaduct/bench_values.h"

namespace viaduct::app {
namespace {

using O = BenchOptions;
using V = std::string_view;
using measure::MemoryChoice;
using measure::Mode;
using measure::Scheme;
using measure::Verified;

constexpr std::array<std::pair<V, OpKind>, 2> kOps{
    {{"WRITE", OpKind::kWrite}, {"READ", OpKind::kRead}}};
constexpr std::array<std::pair<V, MemoryChoice>, 2> kMemory{
    {{"allocate", MemoryChoice::kAllocate}, {"malloc", MemoryChoice::kMalloc}}};
constexpr std::array<std::pair<V, Scheme>, 4> kSchemes{{{"pairwise", Scheme::kPairwise},
                                                        {"manytoone", Scheme::kManyToOne},
                                                        {"onetomany", Scheme::kOneToMany},
                                                        {"tp", Scheme::kTp}}};
constexpr std::array<std::pair<V, Mode>, 2> kModes{{{"SG", Mode::kSg}, {"MG", Mode::kMg}}};
constexpr std::array<std::pair<V, Verified>, 3> kVerify{
    {{"full", Verified::kFull}, {"sampled", Verified::kSampled}, {"off", Verified::kOff}}};
constexpr std::array<std::pair<V, OutputForm>, 4> kOutputs{{{"table", OutputForm::kTable},
                                                            {"nixlbench", OutputForm::kNixlbench},
                                                            {"json", OutputForm::kJson},
                                                            {"csv", OutputForm::kCsv}}};
constexpr std::array<std::pair<V, bool>, 2> kArrivals{{{"constant", false}, {"poisson", true}}};
constexpr std::array<std::pair<V, V>, 2> kRuntimes{{{"ETCD", "ETCD"}, {"ASIO", "ASIO"}}};
constexpr std::array<std::pair<V, V>, 2> kSegments{{{"DRAM", "DRAM"}, {"VRAM", "VRAM"}}};

Status intoSegment(V text, std::string& into) {
  V word;
  VIADUCT_CHECK(intoOneOf(text, kSegments, word));
  into = word;
  return Ok{};
}

Status intoLinkRates(V text, O& into) {
  std::vector<std::string> words;
  VIADUCT_CHECK(intoWords(text, words));
  into.link_rates.clear();
  for (const std::string& word : words) {
    VIADUCT_TRY(measure::proof::LinkRate rate, measure::proof::parseLinkRate(word));
    into.link_rates.push_back(std::move(rate));
  }
  return Ok{};
}

// Takes the flag, and changes nothing: what it asks for is always so.
Status alreadySo(V text, O& /*into*/) {
  bool asked = false;
  return intoYesNo(text, asked);
}

constexpr std::array kWhat{
    BenchFlag{"backend", "NAME,...", "VIADUCT_BACKENDS, or local,tcp; nixlbench: UCX",
              "backends, each measured with each size; a path over another one is an error",
              [](V t, O& o) { return intoWords(t, o.backends); }},
    BenchFlag{"op_type", "WRITE|READ", "WRITE", "which way the initiators move the bytes",
              [](V t, O& o) { return intoOneOf(t, kOps, o.op); }},
    BenchFlag{"op", "write|read", "write", "the same",
              [](V t, O& o) { return intoOneOf(t, kOps, o.op); }},
    BenchFlag{
        "block_sizes", "SIZE,...", "4K to 64M, by fours; nixlbench: doubled from start_block_size",
        "64K, 65536, 1MiB; 1MB is 10^6", [](V t, O& o) { return intoSizes(t, o.block_sizes); }},
    BenchFlag{"start_block_size", "SIZE", "4096", "the first block size; doubled for each row",
              [](V t, O& o) { return intoSize(t, o.start_block_size); }},
    BenchFlag{"max_block_size", "SIZE", "67108864", "the last block size",
              [](V t, O& o) { return intoSize(t, o.max_block_size); }},
    BenchFlag{"batch", "N",
              "64, or fewer to stay at 64 MiB; nixlbench: doubled from start_batch_size",
              "blocks in one transfer", [](V t, O& o) { return intoCount(t, 1, o.batch); }},
    BenchFlag{"start_batch_size", "N", "1", "the first batch size; doubled for each row",
              [](V t, O& o) { return intoCount(t, 1, o.start_batch_size); }},
    BenchFlag{"max_batch_size", "N", "1", "the last batch size",
              [](V t, O& o) { return intoCount(t, 1, o.max_batch_size); }},
    BenchFlag{"memory", "allocate|malloc", "allocate",
              "allocate: from the agent, which peers on this host can map; malloc: plain memory",
              [](V t, O& o) { return intoOneOf(t, kMemory, o.memory); }},
    BenchFlag{"initiator_seg_type", "DRAM|VRAM", "DRAM", "this version moves no GPU memory",
              [](V t, O& o) { return intoSegment(t, o.initiator_seg_type); }},
    BenchFlag{"target_seg_type", "DRAM|VRAM", "DRAM", "this version moves no GPU memory",
              [](V t, O& o) { return intoSegment(t, o.target_seg_type); }},
    BenchFlag{"use_hugepages", "", "false", "2 MiB pages",
              [](V t, O& o) { return intoYesNo(t, o.use_hugepages); }},
    BenchFlag{"total_buffer_size", "SIZE", "what the rows need; nixlbench: 8 GiB",
              "memory of each process, split over its devices and their streams",
              [](V t, O& o) { return intoSize(t, o.total_buffer_size); }},
    BenchFlag{"hot", "", "true", "each stream uses one set of blocks all the time",
              [](V t, O& o) -> Status {
                bool hot = false;
                VIADUCT_CHECK(intoYesNo(t, hot));
                o.cold = !hot;
                return Ok{};
              }},
    BenchFlag{"cold", "", "false",
              "each transfer uses other memory: four times the caches, or the whole buffer",
              [](V t, O& o) -> Status {
                bool cold = false;
                VIADUCT_CHECK(intoYesNo(t, cold));
                o.cold = cold;
                return Ok{};
              }},
    BenchFlag{"working_set", "SIZE", "", "memory that the transfers of a stream walk through",
              [](V t, O& o) { return intoSize(t, o.working_set); }},
    BenchFlag{"device_list", "NAME,...", "all",
              "interfaces, source addresses or RDMA devices to use; all: as the backend chooses",
              [](V t, O& o) { return intoWords(t, o.device_list); }},
    BenchFlag{"seed", "N", "1", "of contents, order of blocks and Poisson arrivals",
              [](V t, O& o) { return intoCount(t, 0, o.seed); }},
};

constexpr std::array kWho{
    BenchFlag{"scheme", "pairwise|manytoone|onetomany|tp", "pairwise",
              "which initiators and targets make pairs",
              [](V t, O& o) { return intoOneOf(t, kSchemes, o.layout.scheme); }},
    BenchFlag{"mode", "SG|MG", "SG", "SG: a process for each device; MG: one for all of a side",
              [](V t, O& o) { return intoOneOf(t, kModes, o.layout.mode); }},
    BenchFlag{"num_initiator_dev", "N", "1", "devices that initiate",
              [](V t, O& o) { return intoCount(t, 1, o.layout.initiators); }},
    BenchFlag{"num_target_dev", "N", "1", "devices that are targets",
              [](V t, O& o) { return intoCount(t, 1, o.layout.targets); }},
    BenchFlag{"local_workers", "N", "as many as the layout has", "run all workers on this machine",
              [](V t, O& o) { return intoCount(t, 2, o.local_workers); }},
    BenchFlag{"num_threads", "N", "1", "threads for each pair, each with transfers of its own",
              [](V t, O& o) { return intoCount(t, 1, o.num_threads); }},
    BenchFlag{"pipeline_depth", "N", "1", "transfers of a thread that are in flight together",
              [](V t, O& o) { return intoCount(t, 1, o.pipeline_depth); }},
    BenchFlag{"bidirectional", "", "false", "targets move as much the other way at the same time",
              [](V t, O& o) { return intoYesNo(t, o.bidirectional); }},
    BenchFlag{"latency", "", "false", "ping-pong: half of a write's and its echo's time",
              [](V t, O& o) { return intoYesNo(t, o.latency); }},
    BenchFlag{"recreate_xfer", "", "false", "plan each transfer anew",
              [](V t, O& o) { return intoYesNo(t, o.recreate_xfer); }},
    BenchFlag{"reregister_mem", "", "false", "register the memory anew for each transfer",
              [](V t, O& o) { return intoYesNo(t, o.reregister_mem); }},
    BenchFlag{"prepared_xfer", "", "false", "transfers are planned once: they always are",
              [](V t, O& o) { return intoYesNo(t, o.prepared_xfer); }},
    BenchFlag{"enable_pt", "", "false", "a progress thread: every agent has one", alreadySo},
    BenchFlag{"progress_threads", "N", "0", "every agent has one",
              [](V t, O&) {
                std::uint32_t count = 0;
                return intoCount(t, 0, count);
              }},
};

constexpr std::array kHowLong{
    BenchFlag{"iterations", "N", "as many as fit in 0.4 s; nixlbench: num_iter",
              "transfers timed for each pair",
              [](V t, O& o) { return intoCount(t, 1, o.iterations); }},
    BenchFlag{"num_iter", "N", "1000",
              "the same, rounded up to a multiple of num_threads x large_blk_iter_ftr",
              [](V t, O& o) { return intoCount(t, 1, o.num_iter); }},
    BenchFlag{"large_blk_iter_ftr", "N", "16", "above 1 MiB so many times fewer transfers",
              [](V t, O& o) { return intoCount(t, 1, o.large_blk_iter_ftr); }},
    BenchFlag{"duration", "TIME", "", "time each row for so long: 2s, 500ms, 60 (seconds)",
              [](V t, O& o) -> Status {
                VIADUCT_CHECK(intoTime(t, o.duration));
                if (o.duration == o.duration.zero()) return wrongValue("no time", "1ms or more");
                return Ok{};
              }},
    BenchFlag{"warmup", "TIME", "50ms; nixlbench: warmup_iter", "before a row is timed",
              [](V t, O& o) { return intoTime(t, o.warmup); }},
    BenchFlag{"warmup_iter", "N", "100", "the same in transfers, rounded as num_iter is",
              [](V t, O& o) { return intoCount(t, 0, o.warmup_iter); }},
    BenchFlag{"repeat", "N", "1", "time each row so many times",
              [](V t, O& o) { return intoCount(t, 1, o.repeat); }},
    BenchFlag{"rate", "PER_SECOND", "",
              "open loop: each thread starts so many transfers a second, ready or not; latency "
              "counts from the intended start",
              [](V t, O& o) { return intoRate(t, o.rate); }},
    BenchFlag{"arrivals", "constant|poisson", "constant", "when those start",
              [](V t, O& o) { return intoOneOf(t, kArrivals, o.poisson); }},
};

constexpr std::array kChecks{
    BenchFlag{"verify", "full|sampled|off", "sampled",
              "check every byte of every transfer, or of some transfers among the timed ones",
              [](V t, O& o) { return intoOneOf(t, kVerify, o.verify); }},
    BenchFlag{"check_consistency", "", "false", "the same as --verify full",
              [](V t, O& o) { return intoYesNo(t, o.check_consistency); }},
    BenchFlag{"require", "WHAT,...", "",
              "what the path must be: rdma, same-host, not-tcp, backend:NAME, proven",
              [](V t, O& o) { return intoRequire(t, o.require); }},
    BenchFlag{"link_rate", "DEVICE=RATE,...", "what devices say",
              "what a link carries, where only you know: eth0=500Mbit, rail0=100G (bits)",
              intoLinkRates},
};

constexpr std::array kMeeting{
    BenchFlag{"meet", "HOST:PORT", "", "the workers meet here; rank 0 answers there",
              [](V t, O& o) { return intoText(t, o.meet); }},
    BenchFlag{"secret", "WORD", "VIADUCT_SECRET",
              "a word that all workers have to know; needed where they meet beyond loopback; in "
              "the variable ps does not show it",
              [](V t, O& o) { return intoText(t, o.secret); }},
    BenchFlag{"rank", "N", "from the environment, or the next free one",
              "of this worker; below num_initiator_dev: an initiator",
              [](V t, O& o) -> Status {
                std::uint32_t rank = 0;
                VIADUCT_CHECK(intoCount(t, 0, rank));
                o.rank = rank;
                return Ok{};
              }},
    BenchFlag{"etcd_endpoints", "URL,...",
              "with --runtime-type etcd: VIADUCT_MEET, NIXL_ETCD_ENDPOINTS, http://localhost:2379"
              "; nixlbench: VIADUCT_MEET, NIXL_ETCD_ENDPOINTS, http://localhost:2379",
              "the workers meet in this etcd",
              [](V t, O& o) { return intoText(t, o.etcd_endpoints); }},
    BenchFlag{"etcd_user", "NAME", "VIADUCT_MEET_USER", "user at the etcd",
              [](V t, O& o) { return intoText(t, o.etcd_user); }},
    BenchFlag{"etcd_password", "WORD", "VIADUCT_MEET_PASSWORD",
              "the user's password; in the variable, or in a file for --config-file, ps does not "
              "show it",
              [](V t, O& o) { return intoText(t, o.etcd_password); }},
    BenchFlag{"etcd_ca", "FILE", "VIADUCT_MEET_CA",
              "the authorities that the etcd's certificate is from",
              [](V t, O& o) { return intoText(t, o.etcd_ca); }},
    BenchFlag{"etcd_cert", "FILE", "VIADUCT_MEET_CERTIFICATE",
              "the certificate to show to the etcd",
              [](V t, O& o) { return intoText(t, o.etcd_cert); }},
    BenchFlag{"etcd_key", "FILE", "VIADUCT_MEET_KEY", "the key of that certificate",
              [](V t, O& o) { return intoText(t, o.etcd_key); }},
    BenchFlag{"benchmark_group", "NAME", "default", "one name for each run at a meeting place",
              [](V t, O& o) { return intoText(t, o.benchmark_group); }},
    BenchFlag{"meet_timeout", "TIME", "3m", "for all workers to be there",
              [](V t, O& o) { return intoTime(t, o.meet_timeout); }},
    BenchFlag{"runtime_type", "ETCD|ASIO", "ETCD",
              "ASIO: meet at asio_address:asio_port; ETCD, where it is given: at an etcd",
              [](V t, O& o) -> Status {
                V word;
                VIADUCT_CHECK(intoOneOf(t, kRuntimes, word));
                o.runtime_type = word;
                return Ok{};
              }},
    BenchFlag{"asio_address", "HOST", "127.0.0.1", "",
              [](V t, O& o) { return intoText(t, o.asio_address); }},
    BenchFlag{"asio_port", "PORT", "12345", "",
              [](V t, O& o) -> Status {
                VIADUCT_CHECK(intoCount(t, 1, o.asio_port));
                if (o.asio_port > 65535) return wrongValue(fmt::format("port {}", t), "1 to 65535");
                return Ok{};
              }},
};

constexpr std::array kAgainst{
    BenchFlag{"against", "'SETTINGS'", "",
              "compare with the same run with these flags and VIADUCT_* assignments on top",
              [](V t, O& o) { return intoText(t, o.against); }},
    BenchFlag{"rounds", "N", "5", "runs of each side, in turns; they share the time of a row",
              [](V t, O& o) { return intoCount(t, 4, o.rounds); }},
    BenchFlag{"fail_if_slower", "N%", "", "end with 1 when the other side is slower than that",
              [](V t, O& o) -> Status {
                double share = 0;
                VIADUCT_CHECK(intoPercent(t, share));
                o.slower = share;
                return Ok{};
              }},
    BenchFlag{"least_effect", "N%", "1%", "call no row faster or slower for less than that",
              [](V t, O& o) { return intoPercent(t, o.least_effect); }},
};

constexpr std::array kOut{
    BenchFlag{"output", "table|nixlbench|json|csv", "table; nixlbench: nixlbench",
              "what is printed",
              [](V t, O& o) -> Status {
                OutputForm form{};
                VIADUCT_CHECK(intoOneOf(t, kOutputs, form));
                o.output = form;
                return Ok{};
              }},
    BenchFlag{"interval", "SECONDS", "",
              "-i for short: print the rate of each interval of a row, as it runs",
              [](V t, O& o) { return intoInterval(t, o.interval); }},
    BenchFlag{"json", "FILE", "", "also write all results to this file",
              [](V t, O& o) { return intoFile(t, o.json); }},
    BenchFlag{"explain", "", "false",
              "measure nothing: say which backends there are, which would carry this, and why",
              [](V t, O& o) { return intoYesNo(t, o.explain); }},
    BenchFlag{"config_file", "FILE", "", "TOML: flag = value; the command line wins",
              [](V t, O& o) { return intoText(t, o.config_file); }},
    BenchFlag{"help", "", "false", "print this", [](V t, O& o) { return intoYesNo(t, o.help); }},
};

constexpr std::array kGroups{FlagGroup{"What moves", kWhat},
                             FlagGroup{"Who moves it", kWho},
                             FlagGroup{"How long", kHowLong},
                             FlagGroup{"What is checked", kChecks},
                             FlagGroup{"Where workers meet", kMeeting},
                             FlagGroup{"Against other settings", kAgainst},
                             FlagGroup{"What comes out", kOut}};

}  // namespace

std::span<const FlagGroup> benchFlags() { return kGroups; }

}  // namespace viaduct::app
