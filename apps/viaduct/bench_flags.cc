// The table of all flags that have an effect here.
#include <viaduct/transfer.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "viaduct/bench_options.h"
#include "viaduct/bench_values.h"

namespace viaduct::app {
namespace {

using O = BenchOptions;
using V = std::string_view;
using measure::Layout;
using measure::Spec;
using measure::StorageChoice;

constexpr base::Words<OpKind, 4> kOps{{{"WRITE", OpKind::kWrite},
                                       {"READ", OpKind::kRead},
                                       {"push", OpKind::kWrite},
                                       {"pull", OpKind::kRead}}};
constexpr base::Words<OutputForm, 4> kBenchOutputs{{{"table", OutputForm::kTable},
                                                    {"nixlbench", OutputForm::kNixlbench},
                                                    {"json", OutputForm::kJson},
                                                    {"csv", OutputForm::kCsv}}};
constexpr base::Words<bool, 2> kArrivals{{{"constant", false}, {"poisson", true}}};
constexpr base::Words<V, 2> kRuntimes{{{"ETCD", "ETCD"}, {"ASIO", "ASIO"}}};
constexpr base::Words<V, 2> kUrlSchemes{{{"http", "http"}, {"https", "https"}}};
constexpr base::Words<int, 2> kChecksums{{{"supported", 0}, {"required", 1}}};
constexpr base::Words<int, 3> kPosixTypes{{{"AIO", 0}, {"URING", 1}, {"POSIXAIO", 2}}};
constexpr base::Words<V, 2> kSegments{{{"DRAM", "DRAM"}, {"VRAM", "VRAM"}}};

// Parses the flag and ignores it, because viaduct always works as it asks.
Status alreadySo(V text, O& /*into*/) {
  bool asked = false;
  return intoYesNo(text, asked);
}

constexpr std::array kWhat{
    BenchFlag{
        "backend", "NAME,...", "VIADUCT_BACKENDS, or local,tcp; nixlbench: UCX",
        "backends to measure, or one backend of storage; a transfer over any other backend is "
        "an error",
        set<intoWords, &O::backends>},
    BenchFlag{"op_type", "WRITE|READ", "WRITE", "direction of the transfers, as initiators see it",
              oneOf<kOps, &O::op>},
    BenchFlag{"op", "write|read|push|pull", "write", "alias of op_type", oneOf<kOps, &O::op>},
    BenchFlag{"block_sizes", "SIZE,...",
              "4K, 16K, 64K and so on to 64M; nixlbench: doubled from start_block_size",
              "block sizes: 64K, 65536, 1MiB (1MB is 10^6)", set<intoSizes, &O::block_sizes>},
    BenchFlag{"start_block_size", "SIZE", "4096", "first block size; each row doubles it",
              set<intoSize, &O::start_block_size>},
    BenchFlag{"max_block_size", "SIZE", "67108864", "last block size",
              set<intoSize, &O::max_block_size>},
    BenchFlag{"batch", "N",
              "64, or fewer to stay at 64 MiB; nixlbench: doubled from start_batch_size",
              "blocks per transfer", count<1, &O::batch>},
    BenchFlag{"start_batch_size", "N", "1", "first batch size; each row doubles it",
              count<1, &O::start_batch_size>},
    BenchFlag{"max_batch_size", "N", "1", "last batch size", count<1, &O::max_batch_size>},
    BenchFlag{"memory", "allocate|malloc", "allocate",
              "allocate: memory from the agent, which peers on this host can map; malloc: ordinary "
              "memory",
              oneOf<measure::kMemoryChoices, &O::spec, &Spec::memory>},
    BenchFlag{"initiator_seg_type", "DRAM|VRAM", "DRAM",
              "memory of the initiators: host memory, or that of GPUs (device i is GPU i)",
              oneOf<kSegments, &O::initiator_seg_type>},
    BenchFlag{"target_seg_type", "DRAM|VRAM", "DRAM",
              "memory of the targets: host memory, or that of GPUs (device i is GPU i)",
              oneOf<kSegments, &O::target_seg_type>},
    BenchFlag{"use_hugepages", "", "false", "use 2 MiB pages",
              set<intoYesNo, &O::spec, &Spec::huge_pages>},
    BenchFlag{"total_buffer_size", "SIZE", "as much as the rows need; nixlbench: 8 GiB",
              "memory per process, divided among its devices and their streams",
              set<intoSize, &O::spec, &Spec::buffer_bytes>},
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
        set<intoYesNo, &O::cold>},
    BenchFlag{"working_set", "SIZE", "", "memory that the transfers of a stream cycle through",
              set<intoSize, &O::working_set>},
    BenchFlag{"device_list", "NAME,...", "all",
              "interfaces, source addresses or RDMA devices to use; all lets the backend choose",
              set<intoWords, &O::device_list>},
    BenchFlag{"seed", "N", "1", "random seed for contents, block order and Poisson arrivals",
              count<0, &O::spec, &Spec::seed>},
};

// Checks the flag's value. The flag has no effect.
template <std::uint64_t Most>
Status noEffect(V text, O& /*into*/) {
  VIADUCT_CHECK(countIn(text, 0, Most));
  return Ok{};
}

template <const auto& Words>
Status anyOf(V text, O& /*into*/) {
  if (base::valueOf(Words, text)) return Ok{};
  return wrongValue(fmt::format("\"{}\" is none of {}", text, base::listOf(Words)), {});
}

Status notAccelerated(V text, O& /*into*/) {
  bool asked = false;
  VIADUCT_CHECK(intoYesNo(text, asked));
  if (!asked) return Ok{};
  return Error{.code = Code::kUnsupported,
               .detail = "accelerated engines of object stores are not built in",
               .remedy = "leave it out"};
}

constexpr std::array kStorage{
    BenchFlag{"filepath", "FOLDER", "", "folder for the files of a run with POSIX (file)",
              set<intoText, &O::spec, &Spec::storage, &StorageChoice::place>},
    BenchFlag{"filenames", "NAME,...", "",
              "files to use, below --filepath; a read leaves them as they are",
              set<intoWords, &O::filenames>},
    BenchFlag{"num_files", "N", "1", "files per device; the blocks go to them in turns",
              count<1, &O::spec, &Spec::storage, &StorageChoice::files>},
    BenchFlag{"storage_enable_direct", "", "VIADUCT_FILE_DIRECT; nixlbench: false",
              "bypass the page cache (O_DIRECT)", set<intoYesNo, &O::storage_enable_direct>},
    BenchFlag{"posix_api_type", "AIO|URING|POSIXAIO", "AIO",
              "no effect: VIADUCT_FILE_ENGINE chooses io_uring or threads", anyOf<kPosixTypes>},
    BenchFlag{"posix_ios_pool_size", "N", "65536", "no effect: the pool has the size of the queue",
              noEffect<1U << 31U>},
    BenchFlag{"posix_kernel_queue_size", "N", "VIADUCT_FILE_QUEUE_DEPTH",
              "most reads and writes of files in flight, at most 1024",
              count<1, &O::kernel_queue_size>},
    BenchFlag{"obj_bucket_name", "NAME", "AWS_DEFAULT_BUCKET",
              "bucket for the objects of a run with OBJ (object)",
              set<intoText, &O::obj_bucket_name>},
    BenchFlag{"obj_endpoint_override", "URL", "VIADUCT_OBJECT_ENDPOINT, AWS_ENDPOINT_OVERRIDE",
              "object store, https://host[:port]; by default Amazon S3 in the region",
              set<intoText, &O::obj_endpoint>},
    BenchFlag{"obj_scheme", "http|https", "http", "scheme of an obj_endpoint_override without one",
              oneOf<kUrlSchemes, &O::obj_scheme>},
    BenchFlag{"obj_region", "NAME", "VIADUCT_OBJECT_REGION; nixlbench: eu-central-1",
              "region of the bucket", set<intoText, &O::obj_region>},
    BenchFlag{"obj_use_virtual_addressing", "", "VIADUCT_OBJECT_STYLE; nixlbench: false",
              "name the bucket in the host name, not in the path", set<intoYesNo, &O::obj_virtual>},
    BenchFlag{"obj_access_key", "KEY", "AWS_ACCESS_KEY_ID",
              "access key; ps shows the flag, but not the variable",
              set<intoText, &O::obj_access_key>},
    BenchFlag{"obj_secret_key", "KEY", "AWS_SECRET_ACCESS_KEY",
              "secret key; ps shows the flag, but not the variable",
              set<intoText, &O::obj_secret_key>},
    BenchFlag{"obj_session_token", "TOKEN", "AWS_SESSION_TOKEN",
              "token of a temporary key; ps shows the flag, but not the variable",
              set<intoText, &O::obj_session_token>},
    BenchFlag{"obj_ca_bundle", "FILE", "VIADUCT_OBJECT_CA",
              "CA certificates that verify the object store", set<intoText, &O::obj_ca>},
    BenchFlag{"obj_req_checksum", "supported|required", "supported",
              "no effect: VIADUCT_OBJECT_SIGN_BODIES chooses what signatures cover",
              anyOf<kChecksums>},
    BenchFlag{"obj_crt_min_limit", "N", "0", "no effect: one client serves all sizes",
              noEffect<std::uint64_t{1} << 48U>},
    BenchFlag{"obj_accelerated_enable", "", "false",
              "refused: accelerated engines are not built in", notAccelerated},
    BenchFlag{"obj_accelerated_type", "NAME", "", "no effect without obj_accelerated_enable",
              [](V, O&) -> Status { return Ok{}; }},
};

// Nothing: swap.
constexpr base::Words<std::optional<measure::Scheme>, 5> kSchemesAndSwap{
    {{"pairwise", measure::Scheme::kPairwise},
     {"manytoone", measure::Scheme::kManyToOne},
     {"onetomany", measure::Scheme::kOneToMany},
     {"tp", measure::Scheme::kTp},
     {"swap", std::nullopt}}};

Status intoScheme(V text, O& into) {
  VIADUCT_CHECK(anyOf<kSchemesAndSwap>(text, into));
  const auto scheme = *base::valueOf(kSchemesAndSwap, text);
  into.swap = !scheme;
  if (scheme) into.spec.layout.scheme = *scheme;
  return Ok{};
}

Status intoGpus(V text, O& into) {
  into.gpu_matrix.clear();
  if (text == "all") return Ok{};
  std::vector<std::string> words;
  VIADUCT_CHECK(intoWords(text, words));
  for (const std::string& word : words) {
    VIADUCT_TRY(const std::uint64_t number,
                countIn(word, 0, std::numeric_limits<std::uint32_t>::max()));
    const auto gpu = static_cast<std::uint32_t>(number);
    if (std::ranges::find(into.gpu_matrix, gpu) != into.gpu_matrix.end())
      return wrongValue(fmt::format("GPU {} is named twice", gpu), "name each GPU once, or all");
    into.gpu_matrix.push_back(gpu);
  }
  return Ok{};
}

Status intoPattern(V text, O& into) {
  measure::Layout& layout = into.spec.layout;
  if (const auto named = base::valueOf(measure::kPatterns, text)) {
    layout.scheme = *named;
    return Ok{};
  }
  auto matrix = measure::readTraffic(std::string(text));
  if (!matrix && matrix.error().os_errno == ENOENT)
    return wrongValue(
        fmt::format("\"{}\" is none of {}, and no file", text, base::listOf(measure::kPatterns)),
        {});
  if (!matrix) return std::move(matrix).error();
  layout.scheme = measure::Scheme::kMatrix;
  layout.matrix = *std::move(matrix);
  return Ok{};
}

constexpr std::array kWho{
    BenchFlag{"scheme", "pairwise|manytoone|onetomany|tp|swap", "pairwise",
              "pairing of initiators and targets; swap: copies of many small blocks between host "
              "memory and a GPU, beside one call for each block",
              intoScheme},
    BenchFlag{"pattern", "allgather|alltoall|allreduce-traffic|broadcast|sendrecv|FILE", "",
              "move the traffic of a collective, or of a matrix of sizes, between members; block "
              "sizes are those of an operation",
              intoPattern},
    BenchFlag{"members", "N", "local_workers, else the rows of FILE, else 2",
              "number of members of a pattern", count<2, &O::members>},
    BenchFlag{"mode", "SG|MG", "SG",
              "SG: one process per device; MG: one process for all devices of a side",
              oneOf<measure::kModes, &O::spec, &Spec::layout, &Layout::mode>},
    BenchFlag{"num_initiator_dev", "N", "1", "number of initiator devices",
              count<1, &O::spec, &Spec::layout, &Layout::initiators>},
    BenchFlag{"num_target_dev", "N", "1", "number of target devices",
              count<1, &O::spec, &Spec::layout, &Layout::targets>},
    BenchFlag{"local_workers", "N", "as many as the devices need",
              "run N workers, all on this machine", count<2, &O::local_workers>},
    BenchFlag{"gpu_matrix", "all|N,...", "",
              "measure each ordered pair of the GPUs of this host, and each GPU with host memory",
              intoGpus},
    BenchFlag{"num_threads", "N", "1", "threads per pair, each with its own transfers",
              count<1, &O::spec, &Spec::threads>},
    BenchFlag{"pipeline_depth", "N", "1", "transfers in flight per thread",
              count<1, &O::spec, &Spec::depth>},
    BenchFlag{"bidirectional", "", "false",
              "move as much data in the other direction at the same time",
              set<intoYesNo, &O::spec, &Spec::bidirectional>},
    BenchFlag{"latency", "", "false", "measure ping-pong: half the time of a write and its echo",
              set<intoYesNo, &O::spec, &Spec::ping_pong>},
    BenchFlag{"recreate_xfer", "", "false", "plan each transfer again",
              set<intoYesNo, &O::spec, &Spec::recreate>},
    BenchFlag{"reregister_mem", "", "false", "register the memory again for each transfer",
              set<intoYesNo, &O::spec, &Spec::reregister>},
    BenchFlag{"prepared_xfer", "", "false", "plan transfers once (always on)",
              set<intoYesNo, &O::prepared_xfer>},
    BenchFlag{"enable_pt", "", "false", "use a progress thread (always on)", alreadySo},
    BenchFlag{"progress_threads", "N", "0", "ignored: every agent has one progress thread",
              [](V t, O&) -> Status {
                VIADUCT_CHECK(countIn(t, 0, std::numeric_limits<std::uint32_t>::max()));
                return Ok{};
              }},
};

constexpr std::array kHowLong{
    BenchFlag{"iterations", "N", "as many as fit in 0.4 s; nixlbench: num_iter",
              "timed transfers per pair", count<1, &O::iterations>},
    BenchFlag{
        "num_iter", "N", "1000",
        "timed transfers per pair, rounded up to a multiple of num_threads x large_blk_iter_ftr",
        count<1, &O::num_iter>},
    BenchFlag{"large_blk_iter_ftr", "N", "16",
              "divide num_iter and warmup_iter by N for blocks above 1 MiB",
              count<1, &O::large_blk_iter_ftr>},
    BenchFlag{"duration", "TIME", "", "time each row for this long: 2s, 500ms, 60 (seconds)",
              set<intoSomeTime, &O::duration>},
    BenchFlag{"warmup", "TIME", "50ms; nixlbench: warmup_iter", "warm-up time before each row",
              set<intoTime, &O::warmup>},
    BenchFlag{"warmup_iter", "N", "100", "warm-up transfers before each row, rounded like num_iter",
              count<0, &O::warmup_iter>},
    BenchFlag{"repeat", "N", "1", "time each row N times", count<1, &O::spec, &Spec::repeat>},
    BenchFlag{"rate", "PER_SECOND", "",
              "open loop: each thread starts this many transfers per second, even while earlier "
              "ones run; latency counts from the intended start",
              set<intoRate, &O::spec, &Spec::rate>},
    BenchFlag{"arrivals", "constant|poisson", "constant", "spacing of the starts that --rate sets",
              oneOf<kArrivals, &O::spec, &Spec::poisson>},
};

constexpr std::array kChecks{
    BenchFlag{
        "verify", "full|sampled|off", "sampled",
        "full: check every byte of every transfer; sampled: check some of the timed transfers",
        oneOf<measure::kVerifieds, &O::verify>},
    BenchFlag{"check_consistency", "", "false", "alias of --verify full",
              set<intoYesNo, &O::check_consistency>},
    BenchFlag{"require", "PATH,...", "",
              "path that every transfer must take: rdma, same-host, not-tcp, backend:NAME, proven",
              set<intoRequire, &O::spec, &Spec::require>},
    BenchFlag{
        "link_rate", "DEVICE=RATE,...", "as the device reports",
        "line rate in bits, if the system reports none or a wrong one: eth0=500Mbit, rail0=100G",
        set<intoLinkRates, &O::spec, &Spec::link_rates>},
};

constexpr std::array kMeeting{
    BenchFlag{"meet", "HOST:PORT", "", "address where the workers meet; rank 0 listens there",
              set<intoText, &O::meet>},
    BenchFlag{"secret", "WORD", "VIADUCT_SECRET",
              "shared secret of all workers, needed beyond loopback; ps shows the flag, but not "
              "VIADUCT_SECRET",
              set<intoText, &O::secret>},
    BenchFlag{"rank", "N", "from the environment, else the next free rank",
              "rank of this worker; initiators have the ranks below num_initiator_dev",
              count<0, &O::rank>},
    BenchFlag{"etcd_endpoints", "URL,...",
              "with --runtime-type etcd: VIADUCT_MEET, NIXL_ETCD_ENDPOINTS, http://localhost:2379"
              "; nixlbench: VIADUCT_MEET, NIXL_ETCD_ENDPOINTS, http://localhost:2379",
              "etcd where the workers meet", set<intoText, &O::etcd_endpoints>},
    BenchFlag{"etcd_user", "NAME", "VIADUCT_MEET_USER", "user name for etcd",
              set<intoText, &O::etcd_user>},
    BenchFlag{"etcd_password", "WORD", "VIADUCT_MEET_PASSWORD",
              "password for etcd; ps shows the flag, but neither the variable nor a config_file",
              set<intoText, &O::etcd_password>},
    BenchFlag{"etcd_ca", "FILE", "VIADUCT_MEET_CA", "CA certificates that verify the etcd server",
              set<intoText, &O::etcd_ca>},
    BenchFlag{"etcd_cert", "FILE", "VIADUCT_MEET_CERTIFICATE", "client certificate for etcd",
              set<intoText, &O::etcd_cert>},
    BenchFlag{"etcd_key", "FILE", "VIADUCT_MEET_KEY", "private key of the client certificate",
              set<intoText, &O::etcd_key>},
    BenchFlag{"benchmark_group", "NAME", "default",
              "name of this run at the meeting place; runs there need different names",
              set<intoText, &O::benchmark_group>},
    BenchFlag{"meet_timeout", "TIME", "3m", "time for all workers to join",
              set<intoTime, &O::meet_timeout>},
    BenchFlag{"runtime_type", "ETCD|ASIO", "ETCD",
              "ASIO: meet at asio_address:asio_port; ETCD: meet at etcd_endpoints",
              oneOf<kRuntimes, &O::runtime_type>},
    BenchFlag{"asio_address", "HOST", "127.0.0.1", "host of the ASIO meeting place",
              set<intoText, &O::asio_address>},
    BenchFlag{"asio_port", "PORT", "12345", "port of the ASIO meeting place",
              count<1, &O::asio_port>},
};

constexpr std::array kAgainst{
    BenchFlag{"against", "'SETTINGS'", "",
              "compare with the same run under these additional flags and VIADUCT_* assignments",
              set<intoText, &O::against>},
    BenchFlag{"rounds", "N", "5", "runs of each side, in turns; they share the time of a row",
              count<4, &O::rounds>},
    BenchFlag{"fail_if_slower", "N%", "",
              "exit with 1 if the other side is slower by more than N%, at 95 % confidence",
              set<intoPercent, &O::slower>},
    BenchFlag{"least_effect", "N%", "1%", "smallest effect to call faster or slower",
              set<intoPercent, &O::least_effect>},
};

constexpr std::array kOut{
    BenchFlag{"output", "table|nixlbench|json|csv", "table; nixlbench: nixlbench", "output format",
              oneOf<kBenchOutputs, &O::output>},
    BenchFlag{"interval", "SECONDS", "", "print the rate of each interval of a row, as it runs",
              set<intoInterval, &O::spec, &Spec::interval>},
    BenchFlag{"json", "FILE", "", "also write all results to this file", set<intoFile, &O::json>},
    BenchFlag{"explain", "", "false",
              "measure nothing; list the backends, the chosen one and the reasons",
              set<intoYesNo, &O::explain>},
    BenchFlag{"config_file", "FILE", "", "TOML file with flag = value lines; the command line wins",
              set<intoText, &O::config_file>},
    BenchFlag{"help", "", "false", "print this help", set<intoYesNo, &O::help>},
};

const std::array kGroups{FlagGroup{"Data", kWhat},
                         FlagGroup{"Storage", kStorage},
                         FlagGroup{"KV cache", kvFlags()},
                         FlagGroup{"Workers", kWho},
                         FlagGroup{"Duration", kHowLong},
                         FlagGroup{"Checks", kChecks},
                         FlagGroup{"Meeting place", kMeeting},
                         FlagGroup{"Comparison", kAgainst},
                         FlagGroup{"Pipeline", pipelineFlags()},
                         FlagGroup{"Output", kOut}};

}  // namespace

std::span<const FlagGroup> benchFlags() { return kGroups; }
std::span<const BenchFlag> storageFlags() { return kStorage; }

}  // namespace viaduct::app
