#include <gtest/gtest.h>
#include <viaduct/blocks.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "core/disjoint_blocks.h"

namespace viaduct {
namespace {

constexpr std::uint64_t kTop = std::uint64_t{1} << 63U;

std::string why(const Result<Blocks>& made) { return made ? "made" : made.error().text(); }

TEST(Blocks, AStridedRunKnowsEveryBlock) {
  const auto blocks =
      Blocks::strided({.base = 0x1000, .stride = 0x300, .bytes = 0x100, .count = 6'500'000});
  ASSERT_TRUE(blocks) << why(blocks);
  EXPECT_EQ(blocks->count(), 6'500'000U);
  EXPECT_EQ(blocks->bytes(), 6'500'000U * 0x100U);
  EXPECT_EQ(blocks->runs(), 1U);
  EXPECT_EQ((*blocks)[0], (Extent{0x1000, 0x100}));
  EXPECT_EQ((*blocks)[6'499'999], (Extent{0x1000 + 6'499'999ULL * 0x300, 0x100}));
}

TEST(Blocks, WithoutAStrideTheBlocksTouch) {
  const auto blocks = Blocks::strided({.base = 0x1000, .bytes = 16, .count = 3});
  ASSERT_TRUE(blocks) << why(blocks);
  EXPECT_EQ(blocks->run(0), (viaduct::Run{.base = 0x1000, .stride = 16, .bytes = 16, .count = 3}));
}

// For one block a swapped stride has no effect, and the plan would copy 64 KiB in place of 4.
TEST(Blocks, StrideAndBytesAreNotSwappedSilentlyEvenForOneBlock) {
  const auto swapped = Blocks::strided({.base = 0, .stride = 4096, .bytes = 65536, .count = 1});
  ASSERT_FALSE(swapped);
  EXPECT_NE(why(swapped).find("stride of 4096, less than its blocks of 65536"), std::string::npos)
      << why(swapped);
}

TEST(Blocks, ASelectionTakesTheBlockTableAsItIs) {
  const std::vector<std::int32_t> table{7, 3, -1};
  const std::uint32_t unsigned_table[] = {7, 3};
  const std::vector<std::uint32_t> expected{7, 3};
  EXPECT_EQ((Selection{{}, std::span(table).first(2)}.indices), expected);
  EXPECT_EQ((Selection{{}, std::span<const std::uint32_t>(unsigned_table)}.indices), expected);
  EXPECT_EQ((Selection{{}, unsigned_table}.indices), expected);
  EXPECT_EQ((Selection{{}, expected}.indices), expected);
  EXPECT_EQ((Selection{{}, {7, 3}}.indices), expected);
  EXPECT_EQ((Selection{{}, table}.indices).back(), ~0U);
  EXPECT_TRUE((Selection{{}, {}}.indices.empty()));
  static_assert(!std::is_constructible_v<Indices, std::vector<std::int64_t>>);
}

TEST(Blocks, AListKeepsItsOrder) {
  const std::vector<Extent> extents{{0x5000, 7}, {0x1000, 4096}, {0x3000, 1}};
  const auto blocks = Blocks::list(extents);
  ASSERT_TRUE(blocks) << why(blocks);
  for (std::size_t i = 0; i < extents.size(); ++i) EXPECT_EQ((*blocks)[i], extents[i]);
  EXPECT_EQ(blocks->bytes(), 4104U);
}

TEST(Blocks, RunsOfEqualAndOfUnequalLengthAreNumberedThrough) {
  for (const std::uint64_t extra : {0, 2}) {
    const auto blocks = Blocks::of({{0x10000, 0x10, 0x10, 3}, {0x1000, 0x20, 8, 3 + extra}});
    ASSERT_TRUE(blocks) << why(blocks);
    EXPECT_EQ(blocks->count(), 6 + extra);
    EXPECT_EQ((*blocks)[2], (Extent{0x10020, 0x10}));
    EXPECT_EQ((*blocks)[3], (Extent{0x1000, 8}));
    EXPECT_EQ((*blocks)[5], (Extent{0x1040, 8}));
    EXPECT_EQ(blocks->runOf(2), 0U);
    EXPECT_EQ(blocks->runOf(3), 1U);
    EXPECT_EQ(blocks->firstOf(1), 3U);
  }
}

TEST(Blocks, NoBlocksAtAllIsAList) {
  const auto blocks = Blocks::list({});
  ASSERT_TRUE(blocks) << why(blocks);
  EXPECT_EQ(blocks->count(), 0U);
  EXPECT_EQ(blocks->bytes(), 0U);
}

TEST(Blocks, RefusesInvalidRuns) {
  const auto says = [](const Result<Blocks>& made, const std::string& words) {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::kInvalid);
    EXPECT_NE(why(made).find(words), std::string::npos) << why(made);
  };
  says(Blocks::strided({0, 16, 0, 4}), "zero bytes");
  says(Blocks::strided({0, 16, 16, 0}), "no blocks");
  says(Blocks::strided({0, 15, 16, 2}), "stride of 15, less than its blocks of 16 bytes");
  says(Blocks::strided({kTop - 1, 2, 2, 1}), "beyond 2^63");
  says(Blocks::strided({~0ULL, 1, 1, 1}), "beyond 2^63");
  says(Blocks::strided({0, kTop, 1, 3}), "beyond 2^63");
  says(Blocks::strided({0, 1, 1, (1ULL << 32U) + 1}), "2^32 blocks");
  says(Blocks::of({{0, 1, 1, 1ULL << 31U}, {kTop / 2, 1, 1, (1ULL << 31U) + 1}}), "2^32 blocks");
  says(Blocks::list(std::vector<Extent>{{0x2000, 16}, {0x1000, 0x1001}}),
       "block 1 [0x1000, 0x2001) overlaps block 0 [0x2000, 0x2010)");
  EXPECT_TRUE(Blocks::strided({.bytes = kTop, .count = 1}));
  EXPECT_TRUE(Blocks::strided({0, 1, 1, 1ULL << 32U}));
}

TEST(Blocks, RunsMayInterleave) {
  // Keys and values of one cache alternate in memory.
  EXPECT_TRUE(Blocks::of({{0, 128, 64, 1'000'000}, {64, 128, 64, 1'000'000}}));
  EXPECT_FALSE(Blocks::of({{0, 128, 64, 1'000'000}, {64, 128, 65, 1'000'000}}));
  EXPECT_TRUE(Blocks::of({{0, 128, 64, 2}, {64 + 128, 128, 65, 1'000'000}}));
}

// Checks against the simple algorithm, which compares every block with every other.
TEST(Blocks, OverlapIsFoundExactly) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    base::Random random(seed);
    std::vector<viaduct::Run> runs;
    const std::uint64_t strides[] = {random.below(9) + 1, random.below(9) + 1};
    for (std::uint64_t n = 2 + random.below(3); n != 0; --n) {
      const std::uint64_t stride = strides[random.below(2)];
      runs.push_back({random.below(60), stride, 1 + random.below(stride), 1 + random.below(5)});
    }
    std::vector<int> touched(200, 0);
    for (const viaduct::Run& run : runs)
      for (std::uint64_t k = 0; k < run.count; ++k)
        for (std::uint64_t b = 0; b < run.bytes; ++b) ++touched[run.base + k * run.stride + b];
    const bool apart = *std::max_element(touched.begin(), touched.end()) < 2;
    refused += apart ? 0 : 1;
    ASSERT_EQ(Blocks::of(runs).has_value(), apart) << "seed " << seed;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 3900);
}

// Short and long lists are sorted by different algorithms; blocks have one size or several.
TEST(Blocks, OverlapInAListIsFoundExactly) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    base::Random random(seed);
    const std::uint64_t count = 2 + random.below(400), room = count * count * 8;
    const bool one_size = random.chance(0.5);
    std::vector<Extent> list;
    for (std::uint64_t i = 0; i < count; ++i)
      list.push_back({random.below(room), one_size ? 4 : 1 + random.below(7)});
    std::vector<int> touched(room + 8, 0);
    for (const Extent& e : list)
      for (std::uint64_t b = 0; b < e.bytes; ++b) ++touched[e.address + b];
    const bool apart = *std::max_element(touched.begin(), touched.end()) < 2;
    refused += apart ? 0 : 1;
    const auto made = Blocks::list(list);
    ASSERT_EQ(made.has_value(), apart) << "seed " << seed;
    for (std::uint64_t i = 0; made && i < count; ++i) ASSERT_EQ((*made)[i], list[i]);
  }
  EXPECT_GT(refused, 20);
  EXPECT_LT(refused, 100);
}

TEST(Blocks, BlocksOfOneSizeAreComparedInAnyOrder) {
  const auto apart = [](std::vector<std::uint64_t> addresses) {
    return core::DisjointBlocks::areApart(addresses, 64);
  };
  EXPECT_TRUE(apart({256, 0, 128}));  // on a grid of their size
  EXPECT_FALSE(apart({256, 0, 256}));
  EXPECT_TRUE(apart({256, 0, 96}));  // beside the grid
  EXPECT_FALSE(apart({256, 0, 32}));
  EXPECT_TRUE(apart({1 << 30, 0, 64}));  // on a grid of many more places
  EXPECT_FALSE(apart({1 << 30, 0, 1 << 30}));
}

}  // namespace
}  // namespace viaduct
