// The argument of the sum kernel: the compilers of the host and of the GPU both read this file.
#pragma once

#include <cstdint>

namespace viaduct::cuda {

// A part of a block.
struct SumRow {
  std::uint64_t address = 0;
  std::uint64_t offset = 0;  // in the block, a multiple of 8
  std::uint32_t bytes = 0;
  std::uint32_t piece = 0;  // index of the piece to whose sums the host adds the row's
};
static_assert(sizeof(SumRow) == 24, "the kernel's table has no padding");

// Stripes that a warp has begun to load and not yet added.
inline constexpr std::uint32_t kStripesInFlight = 8;

}  // namespace viaduct::cuda
