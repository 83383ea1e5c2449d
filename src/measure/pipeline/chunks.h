// The pieces of a pipeline's transfers. Threads: pure functions and plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace viaduct::measure::pipeline {

// A staged transfer moves chunks of this size through rings with this number of chunks
// (docs/design/0030-stages.md). A stage alone does the same, so that both use memory alike.
inline constexpr std::uint64_t kChunkBytes = std::uint64_t{2} << 20U;
inline constexpr std::uint64_t kRingChunks = 8;
inline constexpr std::uint64_t kRingBytes = kChunkBytes * kRingChunks;

// A piece of a transfer.
struct Chunk {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t at() const { return number * kChunkBytes; }  // in all bytes
  std::uint64_t inRing() const { return number % kRingChunks * kChunkBytes; }
};
constexpr std::uint64_t chunksOf(std::uint64_t bytes) {
  return (bytes + kChunkBytes - 1) / kChunkBytes;
}
constexpr Chunk chunkOf(std::uint64_t bytes, std::uint64_t number) {
  return {number, std::min(kChunkBytes, bytes - number * kChunkBytes)};
}

}  // namespace viaduct::measure::pipeline
