// Asks the kernel whether this process may read and write its own memory, without touching it.
// Threads: any.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstdint>

namespace viaduct::base {

// The access that all of [address, address + bytes) allows. kInvalid names the first address that
// is not mapped or not readable. kReadWrite if the kernel cannot be asked (no /proc).
Result<MemoryAccess> memoryAccess(std::uint64_t address, std::uint64_t bytes);

// The same without PROCMAP_QUERY, which came with Linux 6.11: reads the list of all mappings.
Result<MemoryAccess> memoryAccessFromList(std::uint64_t address, std::uint64_t bytes);

}  // namespace viaduct::base
