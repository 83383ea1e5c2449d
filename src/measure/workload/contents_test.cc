#include "measure/workload/contents.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/text.h"

namespace viaduct::measure {
namespace {

using testing::has;

constexpr std::uint64_t kCell = 24, kRows = 5, kColumns = 3, kNumbers = 100;

// Cells whose columns are further apart in memory than its rows, with gaps.
class CellsTest : public ::testing::Test {
 protected:
  static constexpr CellStep kDown{.count = kRows, .bytes = 32, .numbers = 10};
  static constexpr CellStep kAcross{.count = kColumns, .bytes = 200, .numbers = 1};

  Cells cells(std::uint64_t epoch = 1) {
    return {.memory = std::span(memory_).subspan(8, (kRows - 1) * 32 + 2 * 200 + kCell),
            .number = 7,
            .epoch = epoch,
            .rows = kDown,
            .columns = kAcross};
  }
  static CellList only(const Cells& one) {
    return [one](const CellVisit& visit) -> Wrong {
      const auto wrong = visit(one);
      if (!wrong) return std::nullopt;
      return wrong->named("cell " + std::to_string(wrong->row) + "," +
                          std::to_string(wrong->column));
    };
  }
  std::string wrong(const Cells& one, Verified how = Verified::kFull) {
    return contents_.verify(only(one), how)->value_or("");
  }
  std::byte& at(std::uint64_t row, std::uint64_t column, std::uint64_t offset) {
    return memory_[8 + row * 32 + column * 200 + offset];
  }

  const Contents contents_{
      Pattern{.seed = 3, .block_bytes = kCell, .blocks = kNumbers, .epoch = 9}};
  std::vector<std::byte> memory_ = std::vector<std::byte>(1000, std::byte{0xee});
};

TEST_F(CellsTest, HaveTheWordsOfTheirNumbersAndNothingElse) {
  ASSERT_TRUE(contents_.fill(only(cells())));
  EXPECT_EQ(wrong(cells()), "");
  const Pattern words{.seed = 3, .block_bytes = kCell, .blocks = kNumbers, .epoch = 1};
  for (std::uint64_t row = 0; row < kRows; ++row)
    for (std::uint64_t column = 0; column < kColumns; ++column) {
      const std::span cell(&at(row, column, 0), kCell);
      EXPECT_FALSE(words.verify(cell, 7 + 10 * row + column)) << row << " " << column;
      ASSERT_TRUE(Contents::clear(only({.memory = cell})));
      std::ranges::fill(cell, std::byte{0xee});
    }
  EXPECT_EQ(memory_, std::vector<std::byte>(1000, std::byte{0xee}));
}

TEST_F(CellsTest, AWrongOneIsNamed) {
  ASSERT_TRUE(contents_.fill(only(cells())));
  at(4, 1, 17) ^= std::byte{1};
  EXPECT_TRUE(has(wrong(cells()), "cell 4,1 is wrong from offset 17: ")) << wrong(cells());
  std::swap_ranges(&at(0, 0, 0), &at(0, 0, 0) + kCell, &at(1, 0, 0));
  EXPECT_EQ(wrong(cells()),
            "cell 0,0 is wrong from offset 0: swapped: the word belongs to block 17 offset 0");
}

// Cells that touch in memory are visited as one long cell if their numbers follow each other too.
TEST_F(CellsTest, MayTouchInMemoryAndInNumbers) {
  const Pattern words{.seed = 3, .block_bytes = kCell, .blocks = kNumbers, .epoch = 1};
  for (unsigned shape = 0; shape < 16; ++shape) {
    const CellStep across{.count = kColumns,
                          .bytes = (shape & 1U) != 0 ? kCell : kCell + 8,
                          .numbers = (shape & 2U) != 0 ? 1U : 2U};
    const std::uint64_t row_bytes = kColumns * across.bytes;
    const CellStep down{.count = kRows,
                        .bytes = (shape & 4U) != 0 ? row_bytes : row_bytes + 8,
                        .numbers = (shape & 8U) != 0 ? kColumns : 10};
    const std::uint64_t bytes = (kRows - 1) * down.bytes + (kColumns - 1) * across.bytes + kCell;
    const Cells all{.memory = std::span(memory_).first(bytes), .rows = down, .columns = across};
    ASSERT_TRUE(contents_.fill(only(all)));
    EXPECT_EQ(wrong(all), "") << shape;
    for (std::uint64_t row = 0; row < kRows; ++row)
      for (std::uint64_t column = 0; column < kColumns; ++column) {
        const auto cell = all.memory.subspan(row * down.bytes + column * across.bytes, kCell);
        EXPECT_FALSE(words.verify(cell, row * down.numbers + column * across.numbers)) << shape;
        cell[9] ^= std::byte{1};
        const std::string name = "cell " + std::to_string(row) + "," + std::to_string(column);
        EXPECT_TRUE(has(wrong(all), name + " is wrong from offset 9: ")) << wrong(all);
        cell[9] ^= std::byte{1};
      }
  }
}

TEST_F(CellsTest, HaveAnEpochOfTheirOwn) {
  ASSERT_TRUE(contents_.fill(only(cells(2))));
  EXPECT_EQ(wrong(cells(2)), "");
  EXPECT_TRUE(has(wrong(cells(3)), "stale: the word belongs to epoch 2, not 3"));
  EXPECT_TRUE(has(wrong(cells(1)), "foreign"));
  ASSERT_TRUE(Contents::clear(only(cells())));
  EXPECT_TRUE(has(wrong(cells(2)), "zeros"));
}

TEST_F(CellsTest, APartOfABlockHasTheWordsFromItsOffsetOn) {
  const std::span block(&at(0, 0, 0), kCell);
  const Cells whole{.memory = block, .number = 4};
  ASSERT_TRUE(contents_.fill(only(whole)));
  Cells last{.memory = block.subspan(16), .number = 4, .offset = 16};
  EXPECT_EQ(wrong(last), "");
  ASSERT_TRUE(Contents::clear(only(last)));
  EXPECT_EQ(wrong(whole), "cell 0,0 is wrong from offset 16: zeros: no data arrived here");
  EXPECT_EQ(wrong(last), wrong(whole));
  ASSERT_TRUE(contents_.fill(only(last)));
  EXPECT_EQ(wrong(whole), "");
}

TEST_F(CellsTest, ASampleHasTheFirstAndTheLastWord) {
  for (const auto& [row, column, offset] :
       {std::tuple(0U, 0U, 0U), std::tuple(4U, 2U, 23U), std::tuple(4U, 2U, 16U)}) {
    ASSERT_TRUE(contents_.fill(only(cells())));
    EXPECT_EQ(wrong(cells(), Verified::kSampled), "");
    at(row, column, offset) ^= std::byte{1};
    EXPECT_NE(wrong(cells(), Verified::kSampled), "") << row << " " << column;
  }
}

// Each 64 KiB have a checked word, so a gap of twice that size is always noticed.
TEST(Contents, ASampleHasAWordOfEachStretch) {
  constexpr std::uint64_t kBytes = (1 << 20) + 12, kMissing = 128 << 10;
  std::vector<std::byte> memory(kBytes);
  const Contents contents(Pattern{.seed = 3, .block_bytes = kBytes, .blocks = 1});
  const CellList all = [&](const CellVisit& visit) -> Wrong {
    const auto wrong = visit({.memory = memory});
    return wrong ? Wrong(wrong->named("all")) : std::nullopt;
  };
  for (std::uint64_t at = 8; at + kMissing < kBytes; at += 40'000) {
    ASSERT_TRUE(contents.fill(all));
    const std::uint64_t before = contents.checkedWords();
    EXPECT_EQ(*contents.verify(all, Verified::kSampled), std::nullopt);
    EXPECT_EQ(contents.checkedWords() - before, 19U);
    std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(at), kMissing, std::byte{0});
    EXPECT_TRUE(*contents.verify(all, Verified::kSampled)) << at;
  }
}

TEST_F(CellsTest, MayHaveTheBytesOfTheUser) {
  const std::span one(memory_);
  std::vector<std::byte> original(1200, std::byte{0xee});
  const Cells user{.memory = one, .original = original};
  EXPECT_EQ(wrong(user), "");
  original[999] = std::byte{1};
  EXPECT_EQ(wrong(user), "cell 0,0 is wrong from offset 999: the storage has other bytes there");
  const Digest digest = digestOf(memory_);
  const Cells known{.memory = one, .digest = &digest};
  EXPECT_EQ(wrong(known), "");
  memory_[5] ^= std::byte{1};
  EXPECT_NE(wrong(known), "");
}

}  // namespace
}  // namespace viaduct::measure
