// The argument of the copy kernel: the compilers of the host and of the GPU both read this file.
#pragma once

#include <cstdint>

#include "backends/cuda/warp.h"

namespace viaduct::cuda {

// `count` blocks of `bytes` bytes each, at equal distances on both sides. Steps wrap, so a distance
// may be negative.
struct Row {
  std::uint64_t from = 0, to = 0;  // the addresses of the first block
  std::uint64_t bytes = 0;
  std::uint64_t from_step = 0, to_step = 0;
  std::uint32_t count = 0;
  // The bytes of one access: 16, 8, 4 or 1. It divides both addresses and `bytes`. If there are
  // several blocks, it also divides both steps.
  std::uint32_t width = 0;
  friend bool operator==(const Row&, const Row&) = default;
};
static_assert(sizeof(Row) == 48, "the kernel's table has no padding");

// The kernel counts the units of a row in 32 bits.
inline constexpr std::uint64_t kMostBytesOfRow = std::uint64_t{1} << 30U;
inline constexpr std::uint32_t kInFlight = 4;  // loads that a thread has started and not yet stored

}  // namespace viaduct::cuda
