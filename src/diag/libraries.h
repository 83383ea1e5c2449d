// Finds copies of the libraries that move bytes: libfabric, UCX, libibverbs, NCCL. Threads: one at
// a time.
#pragma once

#include <vector>

#include "diag/node.h"

namespace viaduct::diag {

// Copies in the loader's order: LD_LIBRARY_PATH, vendors' folders, the system's folders. Each
// library reports its version, in a process of its own.
std::vector<Live::Library> findLibraries(const Tree& tree, const Variables& variables);
// NCCL alone: about a millisecond if its file name has the version.
std::vector<Live::Library> findNccl(const Tree& tree, const Variables& variables);

}  // namespace viaduct::diag
