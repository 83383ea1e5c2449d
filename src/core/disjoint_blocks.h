// Makes lists of blocks without the checks of the factories of Blocks. Threads: pure functions.
#pragma once

#include <viaduct/blocks.h>

#include <cstdint>
#include <vector>

namespace viaduct::core {

// The caller knows that no block is empty, overlaps another one or ends beyond 2^63, that there are
// at most 2^32 blocks, and that strides are at least the size of a block. Finding overlaps costs
// ten times as much as the rest of the list.
struct DisjointBlocks {
  static Blocks of(std::vector<Run> runs);
  static Blocks at(std::vector<std::uint64_t> addresses, std::uint64_t bytes);  // not empty
};

}  // namespace viaduct::core
