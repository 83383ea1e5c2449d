// Finds flags that contradict each other.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "viaduct/bench_plan.h"
#include "viaduct/bench_values.h"

namespace viaduct::app {
namespace {

struct Rivals {
  std::string_view one, other, why;
  std::string_view remedy = "drop one of the two";
};
constexpr auto kBothSizes = "both set the block sizes";
constexpr auto kBatches = "both set the batch sizes";
constexpr auto kLength = "both set the length of a row";
constexpr auto kBothMeet = "both set the meeting place";
constexpr auto kLocal =
    "--local_workers runs all workers here; the other flag meets workers of other machines";
constexpr auto kAlone = "a ping-pong has one transfer in flight";
constexpr auto kNoIntervals = "--against prints no intervals";

constexpr auto kOwnPairs = "--gpu_matrix chooses the memory and the workers of each pair";
constexpr auto kByPattern = "--pattern decides which member sends how much to which";
constexpr auto kClosedLoop = "--pattern measures operations one after the other";
constexpr auto kByKv = "--kv decides the blocks of a transfer";
constexpr auto kOneRank = "--kv measures one rank of each end";
constexpr auto kBursts = "--kv measures bursts one after the other";
constexpr auto kOmitIt = "omit it";
constexpr auto kMatrixOnly = "--gpu_matrix measures rates and latencies, and nothing else";

constexpr std::array kRivals{
    Rivals{"block_sizes", "start_block_size", kBothSizes},
    Rivals{"block_sizes", "max_block_size", kBothSizes},
    Rivals{"batch", "start_batch_size", kBatches},
    Rivals{"batch", "max_batch_size", kBatches},
    Rivals{"iterations", "num_iter", kLength},
    Rivals{"iterations", "duration", kLength},
    Rivals{"num_iter", "duration", kLength},
    Rivals{"warmup", "warmup_iter", "both set the warm-up"},
    Rivals{"hot", "cold", "hot blocks are reused, cold blocks are not"},
    Rivals{"hot", "working_set", "--hot uses one set of blocks and no working set"},
    Rivals{"op", "op_type", "both set the operation"},
    Rivals{"meet", "etcd_endpoints", kBothMeet},
    Rivals{"meet", "asio_address", kBothMeet},
    Rivals{"meet", "asio_port", kBothMeet},
    Rivals{"etcd_endpoints", "asio_address", kBothMeet},
    Rivals{"etcd_endpoints", "asio_port", kBothMeet},
    Rivals{"meet", "runtime_type", kBothMeet},
    Rivals{"local_workers", "meet", kLocal},
    Rivals{"local_workers", "runtime_type", kLocal},
    Rivals{"local_workers", "etcd_endpoints", kLocal},
    Rivals{"local_workers", "rank", kLocal},
    Rivals{"prepared_xfer", "recreate_xfer", "a transfer is planned either once or each time"},
    Rivals{"prepared_xfer", "reregister_mem", "memory that is registered again needs a new plan"},
    Rivals{"explain", "against", "--explain describes one configuration",
           "drop --against and pass B's flags directly"},
    Rivals{"interval", "against", kNoIntervals},
    Rivals{"gpu_matrix", "initiator_seg_type", kOwnPairs},
    Rivals{"gpu_matrix", "target_seg_type", kOwnPairs},
    Rivals{"gpu_matrix", "scheme", kOwnPairs},
    Rivals{"gpu_matrix", "num_initiator_dev", kOwnPairs},
    Rivals{"gpu_matrix", "num_target_dev", kOwnPairs},
    Rivals{"gpu_matrix", "local_workers", kOwnPairs},
    Rivals{"gpu_matrix", "meet", kOwnPairs},
    Rivals{"gpu_matrix", "etcd_endpoints", kOwnPairs},
    Rivals{"gpu_matrix", "runtime_type", kOwnPairs},
    Rivals{"gpu_matrix", "rank", kOwnPairs},
    Rivals{"gpu_matrix", "latency", kMatrixOnly},
    Rivals{"gpu_matrix", "against", kMatrixOnly},
    Rivals{"gpu_matrix", "pipeline", kMatrixOnly},
    Rivals{"gpu_matrix", "explain", kMatrixOnly},
    Rivals{"gpu_matrix", "interval", kMatrixOnly},
    Rivals{"gpu_matrix", "pattern", kOwnPairs},
    Rivals{"pattern", "pipeline", "each has an output of its own"},
    Rivals{"pattern", "scheme", kByPattern},
    Rivals{"pattern", "mode", kByPattern},
    Rivals{"pattern", "num_initiator_dev", kByPattern, "give --members"},
    Rivals{"pattern", "num_target_dev", kByPattern, "give --members"},
    Rivals{"pattern", "bidirectional", kByPattern},
    Rivals{"pattern", "batch", kByPattern},
    Rivals{"pattern", "start_batch_size", kByPattern},
    Rivals{"pattern", "max_batch_size", kByPattern},
    Rivals{"pattern", "num_threads", kByPattern, "give --pipeline-depth for operations in flight"},
    Rivals{"pattern", "rate", kClosedLoop},
    Rivals{"pattern", "latency", kClosedLoop},
    Rivals{"kv", "block_sizes", kByKv, "give --tokens and --block"},
    Rivals{"kv", "start_block_size", kByKv, kOmitIt},
    Rivals{"kv", "max_block_size", kByKv, kOmitIt},
    Rivals{"kv", "batch", kByKv, "give --requests"},
    Rivals{"kv", "start_batch_size", kByKv, kOmitIt},
    Rivals{"kv", "max_batch_size", kByKv, kOmitIt},
    Rivals{"kv", "total_buffer_size", kByKv, "give --pool-budget"},
    Rivals{"kv", "working_set", kByKv, kOmitIt},
    Rivals{"kv", "hot", kByKv, kOmitIt},
    Rivals{"kv", "cold", kByKv, kOmitIt},
    Rivals{"kv", "num_initiator_dev", kOneRank, kOmitIt},
    Rivals{"kv", "num_target_dev", kOneRank, kOmitIt},
    Rivals{"kv", "scheme", kOneRank, kOmitIt},
    Rivals{"kv", "mode", kOneRank, kOmitIt},
    Rivals{"kv", "pattern", kOneRank},
    Rivals{"kv", "num_threads", kBursts, "give --requests"},
    Rivals{"kv", "pipeline_depth", kBursts, "give --requests"},
    Rivals{"kv", "bidirectional", kBursts, kOmitIt},
    Rivals{"kv", "rate", kBursts, "viaduct kv trace has an open loop"},
    Rivals{"kv", "latency", kBursts, kOmitIt},
    Rivals{"kv", "reregister_mem", kBursts, kOmitIt},
    Rivals{"kv", "pipeline", "each has an output of its own"},
    Rivals{"kv", "gpu_matrix", kOwnPairs},
    Rivals{"kv", "num_iter", kBursts, "give --iterations"},
    Rivals{"kv", "warmup_iter", kBursts, "give --warmup"},
    Rivals{"latency", "bidirectional", kAlone},
    Rivals{"latency", "rate", kAlone},
    Rivals{"latency", "reregister_mem", kAlone},
    Rivals{"latency", "recreate_xfer", kAlone},
};

// True if the flag has an effect: it was given, and a yes-or-no flag says yes.
bool meant(const BenchOptions& options, std::string_view flag) {
  const auto at = options.given.find(flag);
  if (at == options.given.end()) return false;
  const auto yes = parseYesNo(at->second);
  for (const FlagName& name : benchFlagNames())
    if (name.name == flag && name.yes_or_no) return yes && *yes;
  return true;
}

void addRanges(const BenchOptions& o, std::vector<Error>& found) {
  if (o.start_block_size > o.max_block_size)
    found.push_back(badFlag("--start_block_size and --max_block_size",
                            fmt::format("{} is above {}", o.start_block_size, o.max_block_size)));
  if (o.start_batch_size > o.max_batch_size)
    found.push_back(badFlag("--start_batch_size and --max_batch_size",
                            fmt::format("{} is above {}", o.start_batch_size, o.max_batch_size)));
  if (o.check_consistency && o.has("verify") && o.verify != measure::Verified::kFull)
    found.push_back(badFlag("--check_consistency and --verify", "they ask for different checks"));
  if (o.has("etcd_endpoints") && base::sameWord(o.runtime_type, "ASIO"))
    found.push_back(badFlag("--etcd_endpoints and --runtime_type ASIO", kBothMeet));
  if (o.has("arrivals") && o.spec.rate == 0)
    found.push_back(badFlag("--arrivals", "the flag needs --rate"));
}

// True if each device is in one pair only, and each process has one device.
bool ownPairs(const BenchOptions& o) {
  return o.spec.layout.mode == measure::Mode::kSg &&
         o.spec.layout.scheme == measure::Scheme::kPairwise &&
         o.spec.layout.initiators == o.spec.layout.targets;
}
bool manyAtOnce(const BenchOptions& o) { return o.spec.threads > 1 || o.spec.depth > 1; }

void addPingPong(const BenchOptions& o, std::vector<Error>& found) {
  if (manyAtOnce(o))
    found.push_back(badFlag("--latency and --num_threads or --pipeline_depth", kAlone));
  if (o.op == OpKind::kRead)
    found.push_back(badFlag("--latency and --op read", "a ping-pong consists of writes"));
  if (!ownPairs(o))
    found.push_back(badFlag("--latency",
                            "a ping-pong needs separate pairs: --scheme pairwise, --mode SG "
                            "and as many initiators as targets"));
}

void addReregistering(const BenchOptions& o, std::vector<Error>& found) {
  if (manyAtOnce(o) || o.spec.bidirectional || !ownPairs(o))
    found.push_back(badFlag("--reregister_mem",
                            "memory can be registered again only if one transfer uses it: "
                            "one thread, depth 1, one direction and separate pairs"));
  if (o.has("memory") && o.spec.memory == measure::MemoryChoice::kAllocate)
    found.push_back(badFlag("--reregister_mem and --memory allocate",
                            "memory from the agent stays registered while it exists"));
}

void addAgainst(const BenchOptions& o, std::vector<Error>& found) {
  for (const char* flag : {"rounds", "fail_if_slower", "least_effect"})
    if (o.has(flag) && !o.has("against"))
      found.push_back(badFlag(fmt::format("--{}", flag), "the flag needs --against"));
  if (o.has("against") && (o.output == OutputForm::kCsv || o.output == OutputForm::kNixlbench))
    found.push_back(
        badFlag("--against and --output", "a comparison has no such form: use table or json"));
}

// runSwap() measures alone. A comparison or a suite has the flag in its string.
void addSwap(const BenchOptions& o, std::vector<Error>& found) {
  if (o.swap)
    found.push_back(badFlag("--scheme swap", "swapping has no rows to compare",
                            "run viaduct bench --scheme swap"));
}

void addPattern(const BenchOptions& o, std::vector<Error>& found) {
  if (!o.has("pattern")) {
    if (o.has("members")) found.push_back(badFlag("--members", "the flag needs --pattern"));
    return;
  }
  if (o.output == OutputForm::kNixlbench)
    found.push_back(badFlag("--pattern and --output", "nixlbench's table has no columns for it",
                            "use table, json or csv"));
  for (const char* flag : {"block_sizes", "start_block_size", "max_block_size"})
    if (o.spec.layout.scheme == measure::Scheme::kMatrix && o.has(flag))
      found.push_back(badFlag(fmt::format("--pattern and --{}", flag),
                              "the file has the sizes of all transfers"));
  if (o.initiator_seg_type != o.target_seg_type)
    found.push_back(badFlag("--initiator_seg_type and --target_seg_type",
                            "each member of a --pattern sends and receives",
                            "give the same memory for both"));
}

void addKv(const BenchOptions& o, std::vector<Error>& found) {
  if (o.has("kv")) {
    if (o.output == OutputForm::kNixlbench)
      found.push_back(badFlag("--kv and --output", "nixlbench's table has no columns for it",
                              "use table, json or csv"));
    return;
  }
  for (const BenchFlag& flag : kvFlags())
    if (o.has(flag.name)) found.push_back(badFlag(spelled(flag.name, '-'), "the flag needs --kv"));
}

void addPipeline(const BenchOptions& o, std::vector<Error>& found) {
  if (o.has("pipeline")) return;
  if (o.has("create_source"))
    found.push_back(badFlag("--create-source", "the flag needs --pipeline"));
  if (o.has("overwrite") && !o.has("filenames"))
    found.push_back(badFlag("--overwrite", "the flag needs --pipeline or --filenames"));
}

}  // namespace

std::vector<Error> contradictions(const BenchOptions& options) {
  std::vector<Error> found;
  for (const Rivals& rivals : kRivals)
    if (meant(options, rivals.one) && meant(options, rivals.other))
      found.push_back(badFlag(fmt::format("--{} and --{}", rivals.one, rivals.other),
                              std::string(rivals.why), std::string(rivals.remedy)));
  addRanges(options, found);
  addAgainst(options, found);
  addPattern(options, found);
  addPipeline(options, found);
  addKv(options, found);
  addSwap(options, found);
  if (options.spec.ping_pong) addPingPong(options, found);
  if (options.spec.reregister) addReregistering(options, found);
  return found;
}

}  // namespace viaduct::app
