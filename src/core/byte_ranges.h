// Blocks as ranges of bytes. Threads: pure functions.
#pragma once

#include <viaduct/blocks.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace viaduct::core {

inline std::uint64_t endOf(const Extent& range) { return range.address + range.bytes; }

// The bytes of the blocks as ranges in ascending order. Neighbours that touch are one range.
// Nothing: two blocks share a byte.
std::optional<std::vector<Extent>> rangesOf(const Blocks& blocks);

}  // namespace viaduct::core
