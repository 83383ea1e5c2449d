#include "backends/file/cut.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace viaduct::file {
namespace {

constexpr Alignment kBlocks{.direct = true, .offset = 4096, .memory = 512};

TEST(Cut, AlignedOpsMoveStraight) {
  EXPECT_EQ(nextCut(4096, 8192, 4096, kBlocks), (Cut{4096, false}));
  EXPECT_EQ(nextCut(512, 0, 64U << 20U, kBlocks), (Cut{kMostBytes, false}));
}

TEST(Cut, OnlyTheEndsOfAnOpBounce) {
  EXPECT_EQ(nextCut(512 * 7 + 100, 100, 10'000, {true, 4096, 4}), (Cut{3996, true}));
  EXPECT_EQ(nextCut(4096 + 512, 4096, 6004, kBlocks), (Cut{4096, false}));
  EXPECT_EQ(nextCut(8192 + 512, 8192, 1908, kBlocks), (Cut{1908, true}));
}

TEST(Cut, MisalignedMemoryBouncesInLargePieces) {
  EXPECT_EQ(nextCut(4097, 4096, 64U << 20U, kBlocks), (Cut{kMostBytes, true}));
  EXPECT_EQ(nextCut(4097, 4095, 64U << 20U, kBlocks), (Cut{kMostBytes - 4095, true}));
}

TEST(Cut, BufferedOpsNeverBounce) {
  EXPECT_EQ(nextCut(4097, 3, 5000, {}), (Cut{5000, false}));
  EXPECT_EQ(nextCut(4097, 3, 5U << 20U, {}), (Cut{kMostBytes, false}));
}

TEST(Cut, PiecesOfAnyOpObeyTheRules) {
  base::Random random(7);
  for (int round = 0; round < 20'000; ++round) {
    const Alignment rules{
        .direct = true, .offset = 512U << random.below(4), .memory = 1U << random.below(10)};
    std::uint64_t address = random.below(1U << 16U), offset = random.below(1U << 16U);
    std::uint64_t left = 1 + random.below(4U << 20U);
    int bounces = 0;
    const bool congruent = (address - offset) % rules.memory == 0 && rules.memory <= rules.offset;
    while (left != 0) {
      const Cut cut = nextCut(address, offset, left, rules);
      ASSERT_GT(cut.bytes, 0U);
      ASSERT_LE(cut.bytes, left);
      ASSERT_LE(rules.up(offset + cut.bytes) - rules.down(offset), kMostBytes);
      if (!cut.bounces) {
        ASSERT_EQ(address % rules.memory, 0U);
        ASSERT_EQ(offset % rules.offset, 0U);
        ASSERT_EQ(cut.bytes % rules.offset, 0U);
      }
      bounces += cut.bounces ? 1 : 0;
      address += cut.bytes;
      offset += cut.bytes;
      left -= cut.bytes;
    }
    if (congruent) {
      EXPECT_LE(bounces, 2);
    }
  }
}

}  // namespace
}  // namespace viaduct::file
