// Cuts copies into the rows of the copy kernel. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cuda/row.h"

namespace viaduct::cuda {

// One contiguous copy between addresses that a kernel can use.
struct Copy {
  std::uint64_t from = 0, to = 0, bytes = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

// A row has at most about half of a warp's share, so that warps which take the rows in turn end
// together.
inline constexpr std::uint64_t kRowsOfWarp = 2;
// Most rows that cutRows() writes.
constexpr std::size_t mostRows(std::size_t copies, std::uint32_t warps) {
  return 3 * copies + 2 * kRowsOfWarp * std::max<std::size_t>(warps, 1);
}

// Writes rows that move each byte of the copies once, for a launch of `warps` warps, and returns
// their number. Neighbouring copies of one size at constant distances are a run, which costs few
// rows however long it is. Targets must not overlap each other or a source. There are at most
// kRowsOfWarp * kMostBytesOfRow bytes for each warp.
std::size_t cutRows(std::span<const Copy> copies, std::uint32_t warps, Row* rows);

}  // namespace viaduct::cuda
