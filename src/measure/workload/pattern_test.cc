#include "measure/workload/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kBytes = 4096;
constexpr std::uint64_t kBlocks = 8;

class PatternTest : public ::testing::Test {
 protected:
  PatternTest() : memory(kBytes * kBlocks) { fill(now); }
  void fill(const Pattern& p) {
    for (std::uint64_t b = 0; b < kBlocks; ++b) p.fill(block(b), b);
  }
  std::span<std::byte> block(std::uint64_t b) {
    return std::span(memory).subspan(b * kBytes, kBytes);
  }
  // Returns verify()'s text after the offset of the wrong word, or an empty text if the block is
  // right. The first wrong byte may be a later one of that word, because one byte in 256 is right
  // by chance.
  std::string complaint(std::uint64_t b) {
    const auto wrong = now.verify(block(b), b);
    if (!wrong) return {};
    EXPECT_EQ(wrong->block, b);
    return std::to_string(wrong->offset / 8 * 8) + " " + wrong->text;
  }
  Pattern now{.seed = 7, .block_bytes = kBytes, .blocks = kBlocks, .epoch = 3};
  std::vector<std::byte> memory;
};

TEST_F(PatternTest, FilledBlocksAreRight) {
  for (std::uint64_t b = 0; b < kBlocks; ++b) EXPECT_EQ(complaint(b), "");
}

TEST_F(PatternTest, EveryFlippedBitIsSeenAtItsByte) {
  base::Random random(1);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t offset = random.below(kBytes);
    const auto bit = static_cast<std::byte>(1U << random.below(8));
    block(2)[offset] ^= bit;
    const auto wrong = now.verify(block(2), 2);
    ASSERT_TRUE(wrong);
    EXPECT_EQ(wrong->offset, offset);
    block(2)[offset] ^= bit;
  }
  EXPECT_EQ(complaint(2), "");
}

TEST_F(PatternTest, SwappedBlocksAreNamed) {
  std::swap_ranges(block(1).begin(), block(1).end(), block(5).begin());
  EXPECT_EQ(complaint(1), "0 swapped: the word belongs to block 5 offset 0");
  EXPECT_EQ(complaint(5), "0 swapped: the word belongs to block 1 offset 0");
}

TEST_F(PatternTest, ShiftedContentIsNamed) {
  std::memmove(block(1).data() + 64, block(1).data(), kBytes - 64);
  EXPECT_EQ(complaint(1), "64 shifted: the word belongs to offset 0 of the same block");
  std::memmove(block(3).data(), block(3).data() + 3, kBytes - 3);
  EXPECT_EQ(complaint(3), "0 shifted by 5 bytes: block 3 offset 8 begins inside this word");
}

TEST_F(PatternTest, StaleZeroedAndForeignContentIsNamed) {
  Pattern before = now;
  before.epoch = 2;
  before.fill(block(4), 4);
  now.fill(block(4).first(512), 4);
  EXPECT_EQ(complaint(4), "512 stale: the word belongs to epoch 2, not 3");
  std::fill(block(0).begin() + 4000, block(0).end(), std::byte{0});
  EXPECT_EQ(complaint(0), "4000 zeros: no data arrived here");
  Pattern other = now;
  other.seed = 8;
  other.fill(block(6), 6);
  EXPECT_EQ(complaint(6).substr(0, 15), "0 foreign bytes");
}

TEST_F(PatternTest, SizesNeedNotBeWholeWords) {
  for (const std::uint64_t bytes : {1ULL, 7ULL, 8ULL, 9ULL, 511ULL, 513ULL, 4095ULL}) {
    const Pattern odd{.seed = 1, .block_bytes = bytes, .blocks = 2, .epoch = 1};
    std::vector<std::byte> one(bytes);
    odd.fill(one, 1);
    EXPECT_FALSE(odd.verify(one, 1)) << bytes;
    EXPECT_TRUE(odd.verify(one, 0)) << bytes;
    one.back() ^= std::byte{1};
    const auto wrong = odd.verify(one, 1);
    ASSERT_TRUE(wrong) << bytes;
    EXPECT_EQ(wrong->offset, bytes - 1);
  }
}

// Returns the sum of all blocks, added in the order of `blocks`.
WordSum sumOf(const Pattern& p, std::span<const std::byte> memory, std::uint64_t key,
              std::initializer_list<std::uint64_t> blocks) {
  WordSum out;
  for (const std::uint64_t b : blocks) p.add(out, memory.subspan(b * kBytes, kBytes), key, b);
  return out;
}

TEST_F(PatternTest, ASumDependsOnKeyWordsAndPlacesButNotOnTheOrder) {
  const WordSum sum = sumOf(now, memory, 5, {0, 1, 2});
  EXPECT_EQ(sum.words, 3 * kBytes / 8);
  EXPECT_EQ(sumOf(now, memory, 5, {2, 0, 1}), sum);
  EXPECT_NE(sumOf(now, memory, 6, {0, 1, 2}), sum);
  EXPECT_NE(sumOf(now, memory, 5, {0, 1, 3}), sum);
  WordSum parts;
  for (const std::uint64_t at : {1000U, 0U})
    now.add(parts, block(0).subspan(at, at == 0 ? 1000 : kBytes - 1000), 5, 0, at);
  EXPECT_EQ(parts, sumOf(now, memory, 5, {0}));
  for (const std::uint64_t at : {0U, 7U, 4095U, 9000U}) {
    memory[at] ^= std::byte{1};
    EXPECT_NE(sumOf(now, memory, 5, {0, 1, 2}), sum) << at;
    memory[at] ^= std::byte{1};
  }
  std::swap_ranges(block(0).begin(), block(0).end(), block(1).begin());
  EXPECT_NE(sumOf(now, memory, 5, {0, 1, 2}), sum) << "swapped blocks";
}

TEST_F(PatternTest, ASumHasTheBytesOfALastPartialWord) {
  WordSum before, after;
  now.add(before, std::span(memory).first(13), 5, 0);
  EXPECT_EQ(before.words, 2U);
  memory[12] ^= std::byte{1};
  now.add(after, std::span(memory).first(13), 5, 0);
  EXPECT_NE(before, after);
}

}  // namespace
}  // namespace viaduct::measure
