// Finds flags of one command that contradict each other.
#include <fmt/format.h>

#include <array>
#include <span>

#include "viaduct/bench_plan.h"

namespace viaduct::app {
namespace {

struct Rivals {
  std::string_view one, other, why;
  std::string_view remedy = "drop one of the two";
};
constexpr auto kBothSizes = "both set the block sizes";
constexpr auto kBatches = "both set the batch sizes";
constexpr auto kLength = "both set the length of a row";
constexpr auto kAlone = "a ping-pong has one transfer in flight";

constexpr std::array kShared{
    Rivals{"iterations", "duration", kLength},
    Rivals{"explain", "against", "--explain describes one configuration",
           "drop --against and pass B's flags directly"},
    Rivals{"interval", "against", "--against prints no intervals"},
};
constexpr std::array kOfBench{
    Rivals{"local_workers", "meet",
           "--local_workers runs all workers here; the other flag meets workers of other machines"},
    Rivals{"latency", "bidirectional", kAlone},
    Rivals{"latency", "rate", kAlone},
    Rivals{"latency", "reregister_mem", kAlone},
    Rivals{"latency", "recreate_xfer", kAlone},
    Rivals{"latency", "fresh", kAlone},
};
constexpr std::array kOfNixlbench{
    Rivals{"block_sizes", "start_block_size", kBothSizes},
    Rivals{"block_sizes", "max_block_size", kBothSizes},
    Rivals{"batch", "start_batch_size", kBatches},
    Rivals{"batch", "max_batch_size", kBatches},
    Rivals{"iterations", "num_iter", kLength},
    Rivals{"num_iter", "duration", kLength},
    Rivals{"warmup", "warmup_iter", "both set the warm-up"},
    Rivals{"op", "op_type", "both set the operation"},
    Rivals{"prepared_xfer", "recreate_xfer", "a transfer is planned either once or each time"},
    Rivals{"prepared_xfer", "reregister_mem", "memory that is registered again needs a new plan"},
};

void addRivals(const RunOptions& o, std::span<const Rivals> all, std::vector<Error>& found) {
  for (const Rivals& rivals : all)
    if (o.means(rivals.one) && o.means(rivals.other))
      found.push_back(badFlag(fmt::format("--{} and --{}", rivals.one, rivals.other),
                              std::string(rivals.why), std::string(rivals.remedy)));
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

void addNeed(const RunOptions& o, const char* flag, const char* needed, std::vector<Error>& found) {
  if (o.means(flag) && !o.has(needed))
    found.push_back(badFlag(fmt::format("--{}", flag), fmt::format("the flag needs --{}", needed)));
}

}  // namespace

void addContradictions(const RunOptions& o, std::vector<Error>& found) {
  addRivals(o, kShared, found);
  for (const char* flag : {"rounds", "fail_if_slower", "least_effect", "junit"})
    addNeed(o, flag, "against", found);
  if (o.has("against") && (o.out.form == OutputForm::kCsv || o.out.form == OutputForm::kNixlbench))
    found.push_back(
        badFlag("--against and --output", "a comparison has no such form: use table or json"));
}

void addBenchContradictions(const BenchOptions& o, std::vector<Error>& found) {
  addRivals(o, kOfBench, found);
  addRivals(o, kOfNixlbench, found);
  addNeed(o, "arrivals", "rate", found);
  addNeed(o, "overwrite", "filenames", found);
  if (o.spec.ping_pong) addPingPong(o, found);
  if (o.spec.reregister) addReregistering(o, found);
}

}  // namespace viaduct::app
