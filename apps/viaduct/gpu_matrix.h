// `viaduct matrix` measures each ordered pair of the GPUs of this host. Threads: the main one.
#pragma once

#include <viaduct/settings.h>

#include <cstdint>
#include <vector>

#include "viaduct/bench_plan.h"

namespace viaduct::app {

struct MatrixOptions : RunOptions {
  std::vector<std::uint32_t> gpus = {};         // empty: all
  std::vector<std::uint64_t> block_sizes = {};  // of latencies, and of rates
  std::vector<std::uint32_t> batches = {};      // one, of rates; empty: the usual one
};

// Measures the matrix of the options, and returns the exit code. Prints `problems` and those of the
// matrix instead, if there are any.
int runGpuMatrix(const MatrixOptions& options, const Settings& settings,
                 std::vector<Error> problems);

struct MatrixPlan {
  BenchPlan bench = {};  // without rows
  measure::Workload rate = {}, latency = {};
  std::vector<std::uint32_t> processes = {};
};
using MatrixPlanOrProblems = OrProblems<MatrixPlan>;
MatrixPlanOrProblems planMatrix(const MatrixOptions& options, const Settings& settings);

}  // namespace viaduct::app
