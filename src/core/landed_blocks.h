// The blocks of a selection whose bytes have all arrived. Threads: pure functions.
#pragma once

#include <viaduct/blocks.h>

#include <cstdint>
#include <vector>

namespace viaduct::core {

// Bytes of a transfer, counted from the first byte of its first block.
struct Stretch {
  std::uint64_t from = 0, bytes = 0;
};

// The numbers of the blocks of the selection, in its order, that lie in these stretches as a whole.
// The stretches do not overlap, and may be in any order.
Indices landedBlocks(const Selection& selection, std::vector<Stretch> landed);

}  // namespace viaduct::core
