// `viaduct swap` measures copies of small blocks between host memory and a GPU.
// Threads: the main one.
#pragma once

#include <viaduct/settings.h>

#include <cstdint>
#include <vector>

#include "measure/swap/swap.h"
#include "viaduct/bench_plan.h"

namespace viaduct::app {

struct SwapOptions : RunOptions {
  std::vector<std::uint64_t> block_sizes = {};
  std::uint32_t batch = 0;  // 0: not given
};

// Measures, and returns the exit code. Prints `problems` and those of the options instead, if there
// are any.
int runSwap(const SwapOptions& options, const Settings& settings, std::vector<Error> problems);

struct SwapPlan {
  BenchPlan bench = {};
  measure::swap::SwapRequest request = {};
};
using SwapPlanOrProblems = OrProblems<SwapPlan>;
SwapPlanOrProblems planSwap(const SwapOptions& options, const Settings& settings);

}  // namespace viaduct::app
