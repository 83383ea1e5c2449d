// Cuts copies into the rows of the copy kernel. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cuda/row.h"

namespace viaduct::cuda {

// One contiguous copy between addresses that a kernel can use.
struct Copy {
  std::uint64_t from = 0, to = 0, bytes = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

// Replaces `rows` by rows that move each byte of the copies once, for a launch of `warps` warps.
// Neighbouring copies of one size at constant distances are a run, which costs few rows however
// long it is. No row has more than about a quarter of a warp's share, so that warps which take the
// rows in turn end together. Targets must not overlap each other or a source.
void cutRows(std::span<const Copy> copies, std::uint32_t warps, std::vector<Row>& rows);

}  // namespace viaduct::cuda
