#include "move/staging/staging_chunk.h"

#include <algorithm>

#include "move/staging/staging_message.h"

namespace viaduct::move {
namespace {

constexpr std::uint64_t kPage = 4096;

// The first place at or behind `from` that lies in a page as `address` does.
std::uint64_t placeFor(std::uint64_t from, std::uint64_t address) {
  return from + ((address - from) & (kPage - 1));
}

}  // namespace

ChunkPlan fillChunk(std::span<const core::Op> ops, OpCursor& at, std::uint64_t chunk_bytes,
                    ChunkAlign align) {
  ChunkPlan plan;
  while (at.op < ops.size() && plan.pieces.size() < kMostPieces) {
    core::Op part = ops[at.op];
    part.local += at.into;
    part.remote += at.into;
    part.bytes -= at.into;
    const std::uint64_t place =
        placeFor(plan.used, align == ChunkAlign::kLocal ? part.local : part.remote);
    if (place >= chunk_bytes) break;
    const bool whole = part.bytes <= chunk_bytes - place;
    // A block that fits into one chunk is not cut: storage is fastest with whole blocks.
    if (!whole && !plan.pieces.empty() && part.bytes <= chunk_bytes - kPage) break;
    part.bytes = std::min(part.bytes, chunk_bytes - place);
    plan.pieces.push_back({.op = part, .place = place});
    plan.bytes += part.bytes;
    plan.used = place + part.bytes;
    if (!whole) {
      at.into += part.bytes;
      break;
    }
    ++at.op;
    at.into = 0;
  }
  return plan;
}

}  // namespace viaduct::move
