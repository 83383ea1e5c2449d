// Private memory of the process. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace viaduct::measure {

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* at) const;
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

// Maps memory. `flags` are flags of mmap() in addition to MAP_PRIVATE and MAP_ANONYMOUS.
Result<Mapping> mapMemory(std::uint64_t bytes, int flags);

}  // namespace viaduct::measure
