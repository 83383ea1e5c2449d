// Finds copies of the libraries that move bytes: libfabric, UCX, libibverbs, NCCL. Threads: one at
// a time.
#pragma once

#include <optional>
#include <vector>

#include "diag/node.h"
#include "diag/process_facts.h"

namespace viaduct::diag {

// Copies in the loader's order: LD_LIBRARY_PATH, vendors' folders, the system's folders. Versions
// come from file names, or from a child process that loads the library.
std::vector<Live::Library> findLibraries(const Tree& tree, const Variables& variables);
// NCCL alone: about a millisecond if its file name has the version.
std::vector<Live::Library> findNccl(const Tree& tree, const Variables& variables);

// The version of the first NCCL in the loader's order that has a known version. Empty: none has.
std::optional<VersionNumbers> ncclVersion(const Live& live);
// From this version on, NCCL chooses the GID index of each device itself.
inline const VersionNumbers kNcclChoosesGid{2, 21};

}  // namespace viaduct::diag
