#include "measure/result/matrix_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text_table.h"
#include "support/text.h"

namespace viaduct::measure::matrix {
namespace {

std::string textOf(std::span<const Row> rows, std::size_t width) {
  TextSink sink(width);
  show(rows, sink);
  return sink.text();
}

using testing::has;

std::vector<Row> rowsOf(const std::vector<std::string>& places) {
  std::vector<Row> out;
  for (const std::string& from : places)
    for (const std::string& to : places)
      for (const char* const figure : {"rate", "latency"}) {
        if (from == "host" && to == "host") continue;
        Row& row = out.emplace_back(Row{.block_size = 4096, .gb_per_s = 1});
        row.latency_us = Latency{.p50 = 7.25};
        row.kind = MatrixRow{.from = from, .to = to, .figure = figure, .way = "x/far"};
      }
  return out;
}

TEST(MatrixTable, HasTheFiguresWithAMarkForTheirWay) {
  std::vector<Row> rows = rowsOf({"host", "GPU 0", "GPU 1"});
  for (Row& row : rows) {
    MatrixRow& kind = *row.as<MatrixRow>();
    if (kind.from == "GPU 0" && kind.to == "GPU 1" && kind.figure == "rate") {
      row.gb_per_s = 345;
      kind.way = "x/near";
    }
  }
  const std::string text = textOf(rows, base::kNoLimit);
  EXPECT_TRUE(has(text, "    GPU 0  1.00 a    1.00 a     345 b\n")) << text;
  EXPECT_TRUE(has(text, "    GPU 1  7.25 a    7.25 a    7.25 a\n")) << text;
  EXPECT_TRUE(has(text, "  a  x/far\n  b  x/near\n")) << text;
  EXPECT_FALSE(has(text, "two processes")) << text;
}

TEST(MatrixTable, FitsInto80Columns) {
  std::vector<std::string> places{"host"};
  for (int number = 0; number < 16; ++number) places.push_back(fmt::format("GPU {}", number));
  std::vector<Row> rows = rowsOf(places);
  for (Row& row : rows) row.gb_per_s = 12345;
  for (Row& row : rows) row.latency_us->p50 = 123456;
  const std::string text = textOf(rows, 80);
  EXPECT_LE(testing::widestLine(text), 80U) << text;
  EXPECT_TRUE(has(text, "GPU 15\n")) << text;
}

TEST(MatrixTable, AFailedPairIsNamed) {
  std::vector<Row> rows = rowsOf({"GPU 0"});
  rows[0].verdict = Verdict::kCorrupt;
  rows[0].why = "a word";
  const std::string text = textOf(rows, base::kNoLimit);
  EXPECT_TRUE(has(text, "failed")) << text;
  EXPECT_TRUE(has(text, "GPU 0 to GPU 0, rate of one process: CORRUPT: a word\n")) << text;
}

}  // namespace
}  // namespace viaduct::measure::matrix
