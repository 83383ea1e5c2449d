// The contents that a transfer should deliver, chunk by chunk. Threads: plain values and pure
// functions.
#pragma once

#include <viaduct/digest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/workload/chunks.h"
#include "measure/workload/contents.h"

namespace viaduct::measure::pipeline {

// The most chunks of a transfer. Their digests fit into one message between members.
inline constexpr std::uint64_t kMostChunks = 16'384;

class Expected {
 public:
  // Contents that the benchmark makes. A later transfer has a higher epoch. `period` is the number
  // of chunks after which the contents repeat; 0: never.
  static Expected pattern(const Chunking& chunks, std::uint64_t bytes, std::uint64_t seed,
                          std::uint64_t epoch, std::uint64_t period = 0);
  // Contents of the user, known by the digest of each chunk.
  static Expected digests(const Chunking& chunks, std::uint64_t bytes, std::vector<Digest> digests);

  // Writes the pattern of the chunks from `first` on. If `gpu` is set, `memory` is in this mirror.
  Status fill(std::span<std::byte> memory, std::uint64_t first = 0,
              const Mirror* gpu = nullptr) const;
  // Describes the first wrong chunk. `memory` begins with chunk `first`.
  Result<Wrong> verify(std::span<std::byte> memory, std::uint64_t first = 0,
                       const Mirror* gpu = nullptr) const;

 private:
  CellList cells(std::span<std::byte> memory, std::uint64_t first) const;

  Pattern pattern_ = {};
  std::uint64_t period_ = 0;
  std::vector<Digest> digests_ = {};  // empty: the contents are the pattern
};

}  // namespace viaduct::measure::pipeline
