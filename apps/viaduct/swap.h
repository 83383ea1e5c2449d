// `viaduct bench --scheme swap` measures copies of small blocks between host memory and a GPU.
// Threads: the main one.
#pragma once

#include <viaduct/settings.h>

#include <vector>

#include "measure/load/swap.h"
#include "viaduct/bench_plan.h"

namespace viaduct::app {

// Measures, and returns the exit code. Prints `problems` and those of the options instead, if there
// are any.
int runSwap(const BenchOptions& options, const Settings& settings, std::vector<Error> problems);

struct SwapPlan {
  BenchPlan bench = {};
  measure::swap::SwapRequest request = {};
};
struct SwapPlanOrProblems {
  SwapPlan plan = {};
  std::vector<Error> problems = {};
};
SwapPlanOrProblems planSwap(const BenchOptions& options, const Settings& settings);

}  // namespace viaduct::app
