// Cuts the ops of a transfer into chunks of a ring (StagingRing). Threads: plain values and
// functions.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/plan.h"

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

enum class OpEnd : std::uint8_t { kLocal, kRemote };
inline std::uint64_t addressAt(const core::Op& op, OpEnd end) {
  return end == OpEnd::kLocal ? op.local : op.remote;
}
inline std::uint32_t pinAt(const core::Op& op, OpEnd end) {
  return end == OpEnd::kLocal ? op.local_pin : op.remote_pin;
}

// Fills a chunk with ops from `at` on, and moves `at` behind them. `storage` is the end whose
// addresses are in storage. A piece has the same offset within a page in the chunk as in the
// storage, so that storage can be read and written directly.
ChunkPlan fillChunk(std::span<const core::Op> ops, OpCursor& at, std::uint64_t chunk_bytes,
                    OpEnd storage);
// Does the same as fillChunk() without gaps, for memory that is copied.
ChunkPlan packPieces(std::span<const core::Op> ops, OpCursor& at, std::uint64_t chunk_bytes);
// Does the same as packPieces(), but only with ops of one pin of `end`. All chunks of a pin but its
// last one are full, as the parts of an object have to be.
ChunkPlan packChunk(std::span<const core::Op> ops, OpCursor& at, std::uint64_t chunk_bytes,
                    OpEnd end);

// Sorts ops whose `end` is in objects by their offsets in these objects. Refuses ops that do not
// cover all bytes of an object. Other storage may be among the pins.
Result<std::vector<core::Op>> sortForObjects(
    std::span<const core::Op> ops, OpEnd end,
    const std::function<const PinInfo*(std::uint32_t slot)>& pin);

core::OpList listOf(std::vector<core::Op> ops);

}  // namespace viaduct::move
