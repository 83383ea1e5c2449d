#include "core/byte_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/disjoint_blocks.h"

namespace viaduct::core {
namespace {

TEST(ByteRanges, AscendAndAreJoinedWhereTheyTouch) {
  std::vector<viaduct::Run> runs;
  for (std::uint64_t i = 0; i < 300; ++i)
    if (i % 7 != 3) runs.push_back({4096 + 64 * i, 64, 64, 1});
  for (const bool of_one_size : {true, false}) {
    if (!of_one_size) runs.push_back({1'000'000, 32, 32, 1});
    std::ranges::shuffle(runs, std::mt19937(5));
    const auto ranges = rangesOf(DisjointBlocks::of(runs));
    ASSERT_TRUE(ranges);
    ASSERT_EQ(ranges->size(), of_one_size ? 44U : 45U);
    EXPECT_EQ(ranges->front(), (Extent{4096, 3 * 64}));
    for (std::size_t i = 1; i < 43; ++i)
      EXPECT_EQ((*ranges)[i], (Extent{4096 + 64 * (7 * i - 3), 6 * 64}));
  }
}

TEST(ByteRanges, ASharedByteIsFound) {
  EXPECT_FALSE(
      rangesOf(DisjointBlocks::of({{500, 64, 64, 1}, {100, 64, 64, 1}, {163, 64, 64, 1}})));
  EXPECT_TRUE(rangesOf(DisjointBlocks::of({{500, 64, 64, 1}, {100, 64, 64, 1}, {164, 64, 64, 1}})));
  EXPECT_FALSE(rangesOf(DisjointBlocks::of({{500, 64, 64, 1}, {500, 8, 8, 1}})));
}

}  // namespace
}  // namespace viaduct::core
