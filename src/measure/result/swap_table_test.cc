#include "measure/result/swap_table.h"

#include <gtest/gtest.h>

#include "base/text_table.h"
#include "support/text.h"

namespace viaduct::measure::swap {
namespace {

std::string textOf(std::span<const Row> rows, std::size_t width) {
  TextSink sink(width);
  show(rows, sink);
  return sink.text();
}

using testing::has;

std::vector<Row> sample() {
  Row one{.block_size = 4096, .batch_size = 1024};
  one.gb_per_s = 20;
  one.gb_per_s_parts = {19, 20, 21};
  one.gb_per_s_spread = 0.05;
  one.prep_us = MeanP99{.mean = 3};
  one.copied_by = "kernel";
  one.ceiling = Ceiling{"copy from GPU 0 to pinned host memory", 50, 40};
  one.kind = SwapRow{.direction = "out",
                     .order = "random",
                     .way = "viaduct",
                     .gpu = "GPU 0 (NVIDIA H100)",
                     .guard_bytes = 8192};
  Row other = one;
  other.gb_per_s = 2;
  other.gb_per_s_spread = 0;
  other.prep_us.reset();
  other.ceiling.reset();
  other.copied_by = "copy engine";
  other.as<SwapRow>()->way = "one call a block";
  return {one, other};
}

TEST(SwapTable, HasARowForEachWay) {
  const std::string text = textOf(sample(), base::kNoLimit);
  EXPECT_TRUE(has(text, "GPU 0 (NVIDIA H100)\n1024 blocks a copy, each way in 3 rounds in turns\n"))
      << text;
  EXPECT_TRUE(has(text,
                  "4 KiB  out        random  viaduct           20.0   5%     40%   10.0     3.00  "
                  "kernel\n"))
      << text;
  EXPECT_TRUE(has(text, "one call a block  2.00   0%       -   1.00        -  copy engine\n"))
      << text;
  EXPECT_TRUE(has(text, "ceiling: copy from GPU 0 to pinned host memory, 50.0 GB/s\n")) << text;
  EXPECT_TRUE(has(text, "every byte of the blocks and of the guard blocks was checked\n")) << text;
}

TEST(SwapTable, FitsInto80Columns) {
  std::vector<Row> rows = sample();
  for (Row& row : rows) row.block_size = 1023 << 10U;
  rows[0].gb_per_s = 123456;
  rows[0].prep_us->mean = 123456;
  rows[1].ceiling_unknown = "no memory";
  const std::string text = textOf(rows, 80);
  EXPECT_TRUE(has(text, "\ndirection: out, order: random\n")) << text;
  EXPECT_TRUE(has(text, "copy engine\n")) << text;
  EXPECT_LE(testing::widestLine(text), 80U) << text;
}

TEST(SwapTable, SaysWhatIsWrongAndWhatIsUnknown) {
  std::vector<Row> rows = sample();
  rows[0].verdict = Verdict::kCorrupt;
  rows[0].why = "in host memory, guard block 4 is wrong";
  rows[0].ceiling_unknown = "no memory";
  const std::string text = textOf(rows, base::kNoLimit);
  EXPECT_TRUE(has(text, "^ CORRUPT: in host memory, guard block 4 is wrong")) << text;
  EXPECT_TRUE(has(text, "ceiling of out: not measured: no memory\n")) << text;
  EXPECT_FALSE(has(text, "was checked")) << text;
}

TEST(SwapTable, SaysHowManyRowsAreUnprovenAndWhy) {
  std::vector<Row> rows = sample();
  EXPECT_FALSE(has(textOf(rows, base::kNoLimit), "unproven"));
  rows[1].verdict = Verdict::kUnproven;
  rows[1].why = "the kernel knows no such GPU";
  const std::string text = textOf(rows, base::kNoLimit);
  EXPECT_TRUE(has(text, "1 of 2 rows unproven: the kernel knows no such GPU")) << text;
}

TEST(SwapTable, IsEmptyWithoutRows) { EXPECT_EQ(textOf({}, 80), ""); }

}  // namespace
}  // namespace viaduct::measure::swap
