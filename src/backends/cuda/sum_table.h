// Cuts pieces of blocks into the rows of the sum kernel. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cuda/sum_row.h"
#include "core/backend.h"

namespace viaduct::cuda {

// The most bytes of a row, for a launch of `warps` warps over `bytes` bytes.
std::uint64_t mostBytesOfSumRow(std::uint64_t bytes, std::uint32_t warps);

// The bytes of all pieces.
std::uint64_t bytesOf(std::span<const core::BlockPiece> pieces);

// The room that the rows of `pieces` pieces need, which have `bytes` bytes together.
constexpr std::size_t roomForSums(std::size_t pieces, std::uint64_t bytes, std::uint64_t most) {
  return 3 * pieces + bytes / most;
}

// Writes rows with all bytes of the pieces, and returns their number. A row has whole stripes, or
// it is an end of a piece.
std::uint32_t cutSums(std::span<const core::BlockPiece> pieces, std::uint64_t most, SumRow* rows);

}  // namespace viaduct::cuda
