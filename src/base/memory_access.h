// What this process may do with its own memory, asked of the kernel. Nothing is read, written or
// allocated there. Threads: any.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstdint>

namespace viaduct::base {

// The access that all of [address, address + bytes) allows. kInvalid names the first address that
// is not mapped or not readable. kReadWrite where the kernel cannot be asked (no /proc).
Result<MemoryAccess> memoryAccess(std::uint64_t address, std::uint64_t bytes);

// The same without PROCMAP_QUERY (Linux 6.11): the list of all mappings is read.
Result<MemoryAccess> memoryAccessFromList(std::uint64_t address, std::uint64_t bytes);

}  // namespace viaduct::base
