// The flags of `viaduct swap`, and its plan.
#include <fmt/format.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/sizes.h"
#include "measure/workload/swap_contents.h"
#include "viaduct/command_line.h"
#include "viaduct/run_flags.h"
#include "viaduct/workload.h"

namespace viaduct::app {
namespace {

constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 20U;

constexpr std::uint32_t kUsualBlocks = 1024, kUsualRounds = 6;

struct SwapOptions : RunOptions {
  std::vector<std::uint64_t> block_sizes = {};
  std::uint32_t batch = kUsualBlocks;
};
using SwapFlag = Flag<SwapOptions>;

Status intoSwapBatch(std::string_view text, std::uint32_t& into) {
  VIADUCT_TRY(const std::uint64_t blocks, countIn(text, 1, kMostBlocks));
  into = static_cast<std::uint32_t>(blocks);
  return Ok{};
}

constexpr std::array kSwapFlags{
    SwapFlag{"block_sizes", "SIZE,...", "4K, 8K and so on to 64K",
             "block sizes: 64K, 65536, 1MiB (1MB is 10^6); 4K..1M doubles from 4K to 1M",
             set<intoSizes, &SwapOptions::block_sizes>},
    SwapFlag{"batch", "N", "1024", "blocks of a copy", set<intoSwapBatch, &SwapOptions::batch>},
    SwapFlag{"duration", "TIME", "400ms", "time of all rounds of a row: 2s, 500ms, 60 (seconds)",
             set<intoSomeTime, &SwapOptions::spec, &measure::Spec::duration>},
    SwapFlag{"warmup", "TIME", "50ms", "warm-up time before each row",
             set<intoTime, &SwapOptions::spec, &measure::Spec::warmup>},
    SwapFlag{"repeat", "N", "6", "rounds of each way",
             count<1, &SwapOptions::spec, &measure::Spec::repeat>},
};
constexpr std::array kSwapOutput{outputFlag<kTableOrJson>("table|json")};

FlagSheet swapSheet(SwapOptions& o) {
  FlagSheet out;
  out.add<SwapOptions>("Data", kSwapFlags, o)
      .add("Data", runFlags(), o, {"memory", "use_hugepages", "seed"});
  addComparison(out, o);
  addOutput(out, o, kSwapOutput, {"json"});
  return out;
}

std::vector<std::uint64_t> sizesOf(const SwapOptions& o) {
  return o.block_sizes.empty() ? doubled(4 * base::kKiB, 64 * base::kKiB) : o.block_sizes;
}

// Returns two rows for each size, direction and order: one for each way to copy.
std::vector<measure::Workload> rowsOf(const SwapOptions& o) {
  using namespace measure::swap;
  std::vector<measure::Workload> out;
  for (const std::uint64_t bytes : sizesOf(o))
    for (const auto& direction : kDirections)
      for (const auto& order : kOrders)
        for (const auto& way : kWays)
          out.push_back({.op = direction.value == Direction::kIn ? OpKind::kWrite : OpKind::kRead,
                         .block_bytes = bytes,
                         .batch = o.batch,
                         .swap = Copies{direction.value, order.value, way.value}});
  return out;
}

PlanOrProblems planSwap(const SwapOptions& options, const Settings& settings) {
  const std::vector<std::uint64_t> sizes = sizesOf(options);
  // planRows() checks that the memory suffices. A swap needs as much as rows between two processes:
  // host memory, and as much again to check the GPU's memory.
  RunOptions run = options;
  run.initiator_seg_type = "VRAM";
  const auto places = static_cast<std::uint32_t>(measure::swap::placesFor(options.batch));
  PlanOrProblems out =
      planRows(run, settings, {.rows = [&](const auto& backends, const auto&, bool) {
                 return app::rowsOf(run, backends, sizes, {places});
               }});
  measure::Spec& spec = out.plan.run.spec;
  spec.rows = rowsOf(options);
  spec.layout = {.targets = 0};
  spec.verify = measure::Verified::kFull;
  if (!options.has("repeat")) spec.repeat = kUsualRounds;
  std::erase_if(out.plan.run.settings.backends,
                [](const std::string& name) { return !backendFacts(name)->gpus; });
  return out;
}

constexpr Workload<SwapOptions> kSwap{
    "viaduct swap",
    "Measure copies of many small blocks between host memory and a GPU.\n\n"
    "One process copies with GPU 0 under CUDA_VISIBLE_DEVICES, in both directions. Each figure "
    "stands beside that of one driver call for each block.\n",
    "  viaduct swap\n"
    "  viaduct swap --block-sizes 4K,28K --batch 10000 --duration 2s --json swap.json\n",
    swapSheet, planSwap};

}  // namespace

Command swapCommand() { return commandOf(kSwap); }

}  // namespace viaduct::app
