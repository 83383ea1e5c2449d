#include "backends/cuda/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cuda/copies_testing.h"
#include "base/random.h"

namespace viaduct::cuda {
namespace {

constexpr std::uint64_t kSpace = 30'000;
constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

// The source of each target byte. `twice` is set if a byte is written twice.
struct Sources {
  std::vector<std::uint64_t> of = std::vector<std::uint64_t>(kSpace, kNowhere);
  bool twice = false;

  void add(Copy copy) {
    for (std::uint64_t i = 0; i < copy.bytes; ++i) {
      twice = twice || of.at(copy.to + i) != kNowhere;
      of.at(copy.to + i) = copy.from + i;
    }
  }
};

// Returns the number of runs. Blocks that are too large for two of them to share a row of `most`
// bytes form no runs.
std::uint64_t runsOf(const std::vector<Copy>& copies, std::uint64_t most) {
  std::uint64_t runs = 0, length = 0;
  for (std::size_t i = 0; i < copies.size(); ++i, ++length) {
    const bool joins =
        length != 0 && copies[i].bytes <= most / 2 - 8 && copies[i].bytes == copies[i - 1].bytes &&
        (length == 1 ||
         (copies[i].from - copies[i - 1].from == copies[i - 1].from - copies[i - 2].from &&
          copies[i].to - copies[i - 1].to == copies[i - 1].to - copies[i - 2].to));
    if (joins) continue;
    ++runs;
    length = 0;
  }
  return runs;
}

bool fitsWidth(const Row& row, std::uint32_t width) {
  return (row.from | row.to | row.bytes | row.from_step | row.to_step) % width == 0;
}

TEST(Rows, MoveEachByteOfRandomCopiesOnce) {
  base::Random random(11);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Copy> copies = randomCopies(random, kSpace);
    Sources expected, actual;
    for (const Copy& copy : copies) expected.add(copy);
    for (const Row& row : cut(copies, 1U << random.below(12)))
      for (std::uint32_t i = 0; i < row.count; ++i)
        actual.add({row.from + i * row.from_step, row.to + i * row.to_step, row.bytes});
    ASSERT_FALSE(actual.twice) << "round " << round;
    ASSERT_EQ(actual.of, expected.of) << "round " << round;
  }
}

TEST(Rows, HaveTheWidestAccessThatFitsAllTheirUnits) {
  base::Random random(12);
  for (int round = 0; round < 1000; ++round) {
    for (const Row& row : cut(randomCopies(random, kSpace), 100)) {
      ASSERT_TRUE(row.width == 16 || row.width == 8 || row.width == 4 || row.width == 1);
      ASSERT_TRUE(fitsWidth(row, row.width));
      ASSERT_TRUE(row.width == 16 || !fitsWidth(row, row.width == 1 ? 4 : row.width * 2));
      ASSERT_NE(row.bytes, 0U);
      ASSERT_NE(row.count, 0U);
    }
  }
}

TEST(Rows, AreAsManyAndAsLargeAsTheWarpsNeed) {
  base::Random random(13);
  for (int round = 0; round < 1000; ++round) {
    const std::vector<Copy> copies = randomCopies(random, 20 * kSpace);
    const std::uint32_t warps = 1U + static_cast<std::uint32_t>(random.below(300));
    const std::vector<Row> rows = cut(copies, warps);
    const std::uint64_t most =
        std::max<std::uint64_t>(4096, bytesOf(copies) / warps / RowWriter::kRowsOfWarp + 16);
    ASSERT_LE(rows.size(), RowWriter::roomFor(runsOf(copies, most), warps));
    for (const Row& row : rows) ASSERT_LE(row.bytes * row.count, most);
  }
}

TEST(Rows, AFewWarpsGetAMillionBlocksInAFewRows) {
  const std::vector<Copy> copies = strided(1'000'000, {1U << 30U, 1U << 20U, 4096}, 8192, 4096);
  EXPECT_EQ(cut(copies, 1).size(), 4U);
  const std::vector<Row> rows = cut(copies, 1000);
  EXPECT_EQ(rows.size(), 2000U);
  EXPECT_EQ(rows.back(), (Row{.from = (1U << 30U) + 999'500ULL * 8192,
                              .to = (1U << 20U) + 999'500ULL * 4096,
                              .bytes = 4096,
                              .from_step = 8192,
                              .to_step = 4096,
                              .count = 500,
                              .width = 16}));
}

TEST(Rows, ARunMayGoDown) {
  const std::vector<Row> rows = cut(strided(10, {36'864, 576, 64}, 0 - 4096ULL, 0 - 64ULL), 1);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].count, 10U);
  EXPECT_EQ(rows[0].from_step, 0 - 4096ULL);
}

TEST(Rows, ALargeBlockIsDividedBetweenAllWarps) {
  const std::vector<Row> rows = cut({{4096, 1U << 30U, 1U << 28U}}, 128);
  EXPECT_EQ(rows.size(), 256U);
  for (const Row& row : rows) EXPECT_EQ(row.bytes, 1U << 20U);
}

TEST(Rows, ALargeBlockHasLimitedPieces) {
  const std::vector<Row> rows = cut({{0, 1U << 30U, 1U << 28U}}, 4096);
  EXPECT_EQ(rows.size(), RowWriter::kMostPieces);
  for (const Row& row : rows) EXPECT_EQ(row.bytes, 1U << 19U);
}

TEST(Rows, AnUnexpectedlyLargeCopyAddsAsManyRowsAsPromised) {
  std::vector<Row> rows(2 + RowWriter::kMostOfCopy);
  RowWriter writer;
  writer.begin(rows.data(), 16, 1000);
  writer.add({0, 1U << 30U, 16});
  writer.add({5, (1U << 30U) + 4101, (1U << 28U) + 9});
  EXPECT_LE(writer.end(), rows.size());
  EXPECT_GT(writer.end(), RowWriter::kMostPieces);
}

TEST(Rows, ASmallTransferDoesNotFeedWarpsThatItDoesNotNeed) {
  EXPECT_EQ(cut({{0, 8192, 8192}}, 1000).size(), 2U);
  EXPECT_EQ(cut({{0, 4096, 16}}, 1000).size(), 1U);
}

TEST(Rows, OnlyTheEndsOfALongBlockHaveNarrowAccesses) {
  const std::vector<Row> rows = cut(strided(8, {5, 1'000'005, 4100}, 8192, 8192), 1);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows.front(), (Row{5, 1'000'005, 11, 8192, 8192, 8, 1}));
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(rows[i].bytes, 4080U);
    EXPECT_EQ(rows[i].count, 4U);
    EXPECT_EQ(rows[i].width, 16U);
  }
  EXPECT_EQ(rows.back(), (Row{16 + 4080, 1'000'016 + 4080, 9, 8192, 8192, 8, 1}));
}

TEST(Rows, BlocksOfUnequalPlacesHaveTheWidestCommonAccess) {
  const Row first{.from = 16, .to = 8192 + 8, .bytes = 4096, .count = 1, .width = 8};
  EXPECT_EQ(cut({{16, 8192 + 8, 8192}}, 1).front(), first);
  const std::vector<Row> odd = cut({{5, 8192, 8192}}, 1);
  ASSERT_EQ(odd.size(), 2U);
  EXPECT_EQ(odd[0].width, 1U);
}

TEST(Rows, TheDistanceOfBlocksDoesNotNarrowARowOfOneBlock) {
  const std::vector<Row> rows = cut(strided(2, {0, 1U << 20U, 8192}, 8196, 8196), 100);
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0].width, 16U);
  EXPECT_EQ(rows[3].width, 16U);
}

TEST(Rows, NothingToCopyIsNoRow) {
  EXPECT_TRUE(cut({}, 10).empty());
  EXPECT_TRUE(cut(std::vector<Copy>(3), 10).empty());
}

TEST(Rows, NoWarpsCountAsOne) { EXPECT_EQ(cut({{0, 4096, 4096}}, 0), cut({{0, 4096, 4096}}, 1)); }

}  // namespace
}  // namespace viaduct::cuda
