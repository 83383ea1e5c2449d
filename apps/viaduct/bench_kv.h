// The rows of `viaduct bench --kv`. Threads: pure functions; one reads this host's memory.
#pragma once

#include <string>
#include <vector>

#include "measure/load/workload.h"
#include "viaduct/bench_options.h"

namespace viaduct::app {

struct KvRows {
  std::vector<measure::Workload> rows = {};
  std::vector<std::string> remarks = {};  // what the memory does not suffice for
};
// Makes the paged and the bulk rows of all trials. They take turns, so that a change of the
// machine's load meets both. `local`: both pools are on this host.
Result<KvRows> kvRowsOf(const BenchOptions& options, const std::vector<std::string>& backends,
                        bool local);

}  // namespace viaduct::app
