// The pieces of a pipeline's transfers. Threads: pure functions and plain values.
#pragma once

#include <viaduct/settings.h>

#include <algorithm>
#include <cstdint>

namespace viaduct::measure::pipeline {

// A piece of a transfer.
struct Chunk {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t at = 0;       // its offset in the transfer
  std::uint64_t in_ring = 0;  // its offset in a ring
};

// A staged transfer moves chunks through rings (docs/design/0030-stages.md). A stage that
// is measured alone does the same, so that both use memory alike.
struct Chunking {
  std::uint64_t chunk_bytes = Settings{}.staging_chunk;
  std::uint64_t ring_chunks = Settings{}.staging_chunks;

  std::uint64_t ringBytes() const { return chunk_bytes * ring_chunks; }
  std::uint64_t countOf(std::uint64_t bytes) const {
    return (bytes + chunk_bytes - 1) / chunk_bytes;
  }
  friend bool operator==(const Chunking&, const Chunking&) = default;
  Chunk chunk(std::uint64_t bytes, std::uint64_t number) const {
    const std::uint64_t at = number * chunk_bytes;
    return {.number = number,
            .bytes = std::min(chunk_bytes, bytes - at),
            .at = at,
            .in_ring = at % ringBytes()};
  }
};

}  // namespace viaduct::measure::pipeline
