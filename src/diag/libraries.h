// Copies of the libraries that move bytes: libfabric, UCX, libibverbs, NCCL. Threads: one at a
// time.
#pragma once

#include <vector>

#include "diag/node.h"

namespace viaduct::diag {

// In the order in which the loader looks: LD_LIBRARY_PATH, the folders that vendors use, the
// system's. Versions are asked of the libraries, each in a process of its own.
std::vector<Live::Library> findLibraries(const Tree& tree, const Variables& variables);
// NCCL alone: takes about a millisecond where the name of its file tells the version.
std::vector<Live::Library> findNccl(const Tree& tree, const Variables& variables);

}  // namespace viaduct::diag
