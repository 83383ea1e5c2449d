// Contents that show where they belong: every 8-byte word is a function of seed, epoch, block and
// offset, so that a swapped, shifted, stale or missing block is seen and named. Threads: plain
// values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace viaduct::measure {

inline constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);

// The first wrong byte of a block.
struct Mismatch {
  std::uint64_t block = 0;
  std::uint64_t offset = 0;
  std::string text = {};  // what is there instead, as far as it can be told
};

struct Pattern {
  std::uint64_t seed = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;  // together at most 2^48 words
  std::uint64_t epoch = 1;   // below 2^16; a later filling of the same blocks has a higher one

  // The eight bytes at `offset` of the block; a multiple of eight.
  std::uint64_t word(std::uint64_t block, std::uint64_t offset) const;
  // Names the wrong bytes that a block has from `offset` on.
  std::string describe(std::span<const std::byte> found, std::uint64_t block,
                       std::uint64_t offset) const;
  // `memory` holds the block from its start, `block_bytes` of it or fewer.
  void fill(std::span<std::byte> memory, std::uint64_t block) const;
  std::optional<Mismatch> verify(std::span<const std::byte> memory, std::uint64_t block) const;
};

}  // namespace viaduct::measure
