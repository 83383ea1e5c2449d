// The contents that a transfer should deliver, block by block. Threads: plain values and pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/load/pattern.h"

namespace viaduct::measure::pipeline {

// The size of a checked block. A pipeline of `bytes` has at most 16,384 of them, so that their
// digests fit into one message between members.
std::uint64_t checkedBlock(std::uint64_t bytes);

// Returns a number that depends on every word of the block and on its place in the block.
std::uint64_t digestOf(std::span<const std::byte> block);

class Expected {
 public:
  // Contents that the benchmark makes. A later transfer has a higher epoch.
  static Expected pattern(std::uint64_t bytes, std::uint64_t seed, std::uint64_t epoch);
  // Contents of the user, known by the digest of each block.
  static Expected digests(std::uint64_t bytes, std::vector<std::uint64_t> digests);

  std::uint64_t blockBytes() const { return pattern_.block_bytes; }
  // Writes the pattern to `memory`, which begins with block `first`.
  void fill(std::span<std::byte> memory, std::uint64_t first = 0) const;
  // Returns a description of the first wrong block of `memory`, or nothing.
  std::optional<std::string> check(std::span<const std::byte> memory,
                                   std::uint64_t first = 0) const;

 private:
  std::optional<std::string> checkBlock(std::span<const std::byte> block,
                                        std::uint64_t number) const;

  Pattern pattern_ = {};
  std::vector<std::uint64_t> digests_ = {};  // empty: the pattern
};

}  // namespace viaduct::measure::pipeline
