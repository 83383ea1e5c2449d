// Makes the plan of `viaduct bench --scheme swap` from the flags of the command.
#include <fmt/format.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/sizes.h"
#include "measure/load/swap_contents.h"
#include "viaduct/bench_values.h"
#include "viaduct/flags.h"
#include "viaduct/swap.h"

namespace viaduct::app {
namespace {

constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 20U;
constexpr std::array<std::string_view, 13> kFlags{
    "batch",  "block_sizes", "config_file", "duration", "help",          "json",  "memory",
    "output", "repeat",      "scheme",      "seed",     "use_hugepages", "warmup"};

// Flags of rows that a user may expect to work, and why they do not.
struct Refused {
  std::string_view flag, why, remedy;
};
constexpr auto kOneGpu = "swapping measures GPU 0 of one process";
constexpr auto kVisible = "omit it; CUDA_VISIBLE_DEVICES chooses the GPU";
constexpr auto kBothMemories = "swapping is between host memory and memory of a GPU";
constexpr auto kOmit = "omit it";
constexpr std::array kRefused{
    Refused{"num_initiator_dev", kOneGpu, kVisible},
    Refused{"num_target_dev", kOneGpu, kVisible},
    Refused{"mode", kOneGpu, kVisible},
    Refused{"meet", kOneGpu, kOmit},
    Refused{"initiator_seg_type", kBothMemories, kOmit},
    Refused{"target_seg_type", kBothMemories, kOmit},
    Refused{"op", "swapping measures both directions", kOmit},
    Refused{"op_type", "swapping measures both directions", kOmit},
    Refused{"bidirectional", "swapping measures one direction after the other", kOmit},
    Refused{"verify", "every byte is checked", kOmit},
    Refused{"backend", "one process swaps with its own GPU, so no backend is chosen", kOmit},
    Refused{"iterations", "both ways copy for the same time", "use --duration"},
    Refused{"num_iter", "both ways copy for the same time", "use --duration"},
    Refused{"against", "swapping compares itself with one call for each block", kOmit},
};

void addFlagProblems(const BenchOptions& o, std::vector<Error>& problems) {
  for (const auto& [name, value] : o.given) {
    if (std::ranges::find(kFlags, name) != kFlags.end()) continue;
    const auto known = std::ranges::find(kRefused, name, &Refused::flag);
    const std::string flag = fmt::format("--scheme swap and {}", spelled(name, '-'));
    if (known != kRefused.end())
      problems.push_back(badFlag(flag, std::string(known->why), std::string(known->remedy)));
    else
      problems.push_back(badFlag(flag, "the flag has no effect on swapping", kOmit));
  }
  if (o.output && *o.output != OutputForm::kTable && *o.output != OutputForm::kJson)
    problems.push_back(
        badFlag("--scheme swap and --output", "swapping has no such form", "use table or json"));
  if (o.has("batch") && o.batch > kMostBlocks)
    problems.push_back(
        badFlag("--scheme swap and --batch", fmt::format("the limit is {} blocks", kMostBlocks)));
}

measure::swap::SwapRequest requestOf(const BenchOptions& o) {
  measure::swap::SwapRequest out{.host = {.choice = o.spec.memory, .huge_pages = o.spec.huge_pages},
                                 .seed = o.spec.seed};
  out.block_sizes = o.block_sizes;
  if (out.block_sizes.empty())
    for (std::uint64_t bytes = 4 * base::kKiB; bytes <= 64 * base::kKiB; bytes *= 2)
      out.block_sizes.push_back(bytes);
  if (o.has("batch")) out.blocks = o.batch;
  if (o.has("repeat")) out.rounds = o.spec.repeat;
  if (o.has("duration")) out.duration = o.duration;
  if (o.has("warmup")) out.warmup = o.warmup;
  return out;
}

}  // namespace

SwapPlanOrProblems planSwap(const BenchOptions& options, const Settings& settings) {
  SwapPlanOrProblems out;
  addFlagProblems(options, out.problems);
  if (!out.problems.empty()) return out;
  out.plan.request = requestOf(options);
  // The plan of rows between two processes needs the same memory: that of the host, and as much to
  // check the GPU's.
  BenchOptions bench = options;
  bench.swap = false;
  bench.as_nixlbench = false;
  bench.block_sizes = out.plan.request.block_sizes;
  bench.batch = static_cast<std::uint32_t>(measure::swap::placesFor(out.plan.request.blocks));
  bench.given["batch"] = fmt::to_string(bench.batch);
  bench.initiator_seg_type = "VRAM";
  PlanOrProblems planned = planBench(bench, settings);
  out.problems = std::move(planned.problems);
  BenchPlan& plan = out.plan.bench;
  plan = std::move(planned.plan);
  plan.command = commandText("viaduct bench", options.given);
  plan.run.spec.rows.clear();
  plan.run.spec.layout = {.targets = 0};
  std::erase_if(plan.run.settings.backends,
                [](const std::string& name) { return !backendFacts(name)->gpus; });
  out.plan.request.settings = plan.run.settings;
  return out;
}

}  // namespace viaduct::app
