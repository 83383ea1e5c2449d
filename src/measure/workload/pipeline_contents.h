// The contents that a transfer should deliver, chunk by chunk. Threads: plain values and pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/workload/chunks.h"
#include "measure/workload/pattern.h"

namespace viaduct::measure::pipeline {

// The most chunks of a transfer. Their digests fit into one message between members.
inline constexpr std::uint64_t kMostChunks = 16'384;

// Returns a number that depends on every word of the chunk and on its place in the chunk.
std::uint64_t digestOf(std::span<const std::byte> chunk);

class Expected {
 public:
  // Contents that the benchmark makes. A later transfer has a higher epoch. `period` is the number
  // of chunks after which the contents repeat; 0: never.
  static Expected pattern(const Chunking& chunks, std::uint64_t bytes, std::uint64_t seed,
                          std::uint64_t epoch, std::uint64_t period = 0);
  // Contents of the user, known by the digest of each chunk.
  static Expected digests(const Chunking& chunks, std::uint64_t bytes,
                          std::vector<std::uint64_t> digests);

  // Writes the pattern of the chunks from `first` on.
  void fill(std::span<std::byte> memory, std::uint64_t first = 0) const;
  // Returns a description of the first wrong chunk, or nothing. `memory` begins with chunk `first`.
  std::optional<std::string> check(std::span<const std::byte> memory,
                                   std::uint64_t first = 0) const;

 private:
  std::uint64_t blockOf(std::uint64_t chunk) const {
    return period_ == 0 ? chunk : chunk % period_;
  }
  std::optional<std::string> checkChunk(std::span<const std::byte> chunk,
                                        std::uint64_t number) const;

  Pattern pattern_ = {};
  std::uint64_t period_ = 0;
  std::vector<std::uint64_t> digests_ = {};  // empty: the pattern
};

}  // namespace viaduct::measure::pipeline
