// Cuts the ops of a transfer into chunks of a ring. Threads: plain values and functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/op.h"

namespace viaduct::move {

// A part of an op, and its place in the chunk.
struct ChunkPiece {
  core::Op op;
  std::uint64_t place = 0;
};
struct ChunkPlan {
  std::vector<ChunkPiece> pieces = {};
  std::uint64_t bytes = 0;  // of the pieces
  std::uint64_t used = 0;   // of the chunk, with the gaps between the pieces
};
// A position in a list of ops.
struct OpCursor {
  std::size_t op = 0;
  std::uint64_t into = 0;  // bytes of that op that are already in a chunk
};

// Fills a chunk with ops from `at` on, and moves `at` behind them. `align` selects the end whose
// addresses are in storage: a piece lies in the chunk as it lies in a page of the storage, so that
// storage can be read and written directly.
enum class ChunkAlign : std::uint8_t { kLocal, kRemote };
ChunkPlan fillChunk(std::span<const core::Op> ops, OpCursor& at, std::uint64_t chunk_bytes,
                    ChunkAlign align);

}  // namespace viaduct::move
