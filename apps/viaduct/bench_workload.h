// The workloads `viaduct bench` and `nixlbench`. Threads: any.
#pragma once

#include "viaduct/bench_options.h"
#include "viaduct/workload.h"

namespace viaduct::app {

const Workload<BenchOptions>& benchWorkload();
// Returns the flags that nixlbench has, too.
FlagSheet sharedSheet(BenchOptions& options);

CommandPage nixlbenchPage();
// `words` follow the program's name.
int runNixlbench(const CommandWords& words);

}  // namespace viaduct::app
