// `viaduct bench --gpu-matrix` measures each ordered pair of the GPUs of this host. Threads: the
// main one.
#pragma once

#include <viaduct/settings.h>

#include <vector>

#include "viaduct/bench_plan.h"

namespace viaduct::app {

// Measures the matrix of the options, and returns the exit code. Prints `problems` and those of the
// matrix instead, if there are any.
int runGpuMatrix(const BenchOptions& options, const Settings& settings,
                 std::vector<Error> problems);

}  // namespace viaduct::app
