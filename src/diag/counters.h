// Error and congestion counters of RDMA devices and interfaces. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "diag/tree.h"

namespace viaduct::diag {

// The files to read twice, so that the checks see which have grown: those with a number whose
// growth some check judges. A driver refreshes most only every `lifespan` ms (10 by default).
std::vector<std::string> counterPaths(const Tree& tree);

}  // namespace viaduct::diag
