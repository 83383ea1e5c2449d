// Contents that identify their place. Every 8-byte word is a function of seed, epoch, block and
// offset, so that a check recognises swapped, shifted, stale and missing blocks. Threads: plain
// values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace viaduct::measure {

inline constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);
inline constexpr std::uint64_t kEpochs = std::uint64_t{1} << 16U;  // number of a Pattern's epochs

// The first wrong byte of a block.
struct Mismatch {
  std::uint64_t block = 0;
  std::uint64_t offset = 0;
  std::string text = {};  // a guess about the found bytes
};

// A keyed sum over words and their positions, in any order. A process that does not have the words
// cannot know the sum, even if it prepares before it knows the key.
struct WordSum {
  std::uint64_t first = 0, second = 0;
  std::uint64_t words = 0;
  friend bool operator==(const WordSum&, const WordSum&) = default;
};

struct Pattern {
  std::uint64_t seed = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;  // all blocks together have at most 2^48 words
  std::uint64_t epoch = 1;   // below 2^16; each refilling of the same blocks has a higher epoch

  // Describes the wrong bytes of a block from `offset` on, which is a multiple of eight.
  std::string describe(std::span<const std::byte> found, std::uint64_t block,
                       std::uint64_t offset) const;
  // `memory` holds bytes of the block from `offset` on, or of several blocks of whole words.
  void fill(std::span<std::byte> memory, std::uint64_t block, std::uint64_t offset = 0) const;
  // Returns the first wrong byte, with its offset in `memory`.
  std::optional<Mismatch> verify(std::span<const std::byte> memory, std::uint64_t block,
                                 std::uint64_t offset = 0) const;
  // Adds the words in `memory`, which belong to a block from `offset` on, right or wrong. Seed and
  // epoch do not matter.
  void add(WordSum& sum, std::span<const std::byte> memory, std::uint64_t key, std::uint64_t block,
           std::uint64_t offset = 0) const;
};

}  // namespace viaduct::measure
