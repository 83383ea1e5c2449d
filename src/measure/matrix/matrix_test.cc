#include "measure/matrix/matrix.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "support/text.h"

namespace viaduct::measure::matrix {
namespace {

using testing::has;

SeenGpu gpu(std::uint32_t number, std::vector<std::uint32_t> peers) {
  return {
      .number = number, .name = fmt::format("GPU {} (Fake)", number), .peers = std::move(peers)};
}

Row rowOf(double gb_per_s, double p50) {
  Row row{.block_size = 4096, .gb_per_s = gb_per_s};
  row.latency_us = Latency{.p50 = p50};
  return row;
}

TEST(GpuMatrix, HasEachOrderedPairAndEachGpuWithItselfAndWithTheHost) {
  const std::vector<Cell> cells = cellsOf({gpu(0, {}), gpu(3, {})}, {1, 2});
  ASSERT_EQ(cells.size(), 16U);  // 9 places less host to host, in one process and in two
  std::vector<std::string> pairs;
  for (const Cell& cell : cells)
    pairs.push_back(
        fmt::format("{} {} {}", placeName(cell.from), placeName(cell.to), cell.processes));
  for (const char* one : {"host GPU 0 1", "GPU 0 host 1", "GPU 0 GPU 0 1", "GPU 0 GPU 3 1",
                          "GPU 3 GPU 0 1", "GPU 3 GPU 3 1", "GPU 0 GPU 3 2"})
    EXPECT_EQ(std::ranges::count(pairs, one), 1) << one;
}

TEST(GpuMatrix, ItsTextHasTheFiguresWithAMarkForTheirWay) {
  GpuMatrix matrix{.gpus = {gpu(0, {1}), gpu(1, {})}};
  matrix.cells = cellsOf(matrix.gpus, {1});
  for (Cell& cell : matrix.cells) {
    cell.rate = rowOf(1, 5);
    cell.latency = rowOf(1, 7.25);
    cell.rate_way = cell.latency_way = "x/far";
    if (cell.from && cell.to && cell.from != cell.to) {
      cell.rate = rowOf(345, 5);
      cell.rate_way = "x/near";
    }
  }
  const std::string text = matrixText(matrix, base::kNoLimit);
  EXPECT_TRUE(has(text, "GPU 0 (Fake), peer access to GPU 1\n  GPU 1 (Fake)\n")) << text;
  EXPECT_TRUE(has(text, "    GPU 0  1.00 a    1.00 a     345 b\n")) << text;
  EXPECT_TRUE(has(text, "    GPU 1  7.25 a    7.25 a    7.25 a\n")) << text;
  EXPECT_TRUE(has(text, "  a  x/far\n  b  x/near\n")) << text;
  EXPECT_FALSE(has(text, "two processes")) << text;
  EXPECT_TRUE(allGood(matrix));
}

TEST(GpuMatrix, ItsTablesFitInto80Columns) {
  GpuMatrix matrix;
  for (std::uint32_t number = 0; number < 16; ++number) matrix.gpus.push_back(gpu(number, {}));
  matrix.cells = cellsOf(matrix.gpus, {1});
  for (Cell& cell : matrix.cells) {
    cell.rate = rowOf(12345, 5);
    cell.latency = rowOf(1, 123456);
  }
  const std::string text = matrixText(matrix, 80);
  EXPECT_LE(testing::widestLine(text), 80U) << text;
  EXPECT_TRUE(has(text, "GPU 15\n")) << text;
}

TEST(GpuMatrix, AFailedPairIsNamedAndNotGood) {
  GpuMatrix matrix{.gpus = {gpu(0, {})}};
  matrix.cells = {{.from = Place(0), .to = Place(0), .processes = 2, .problem = "corrupt: a word"}};
  const std::string text = matrixText(matrix, base::kNoLimit);
  EXPECT_TRUE(has(text, "with one GPU there is no pair of two GPUs")) << text;
  EXPECT_TRUE(has(text, "failed")) << text;
  EXPECT_TRUE(has(text, "GPU 0 to GPU 0, two processes: corrupt: a word\n")) << text;
  EXPECT_FALSE(allGood(matrix));
}

TEST(GpuMatrix, ItsJsonHasEachCell) {
  GpuMatrix matrix{.hostname = "node", .gpus = {gpu(0, {1}), gpu(1, {0})}};
  matrix.cells = {{.from = Place(0), .to = Place(1), .rate_way = "x/near", .rate = rowOf(345, 5)},
                  {.from = {}, .to = Place(1), .problem = "no memory"}};
  const auto json = nlohmann::json::parse(matrixJson(matrix));
  EXPECT_EQ(json.at("format"), "viaduct-gpu-matrix/1");
  EXPECT_EQ(json.at("gpus")[0].at("peer_access"), std::vector{1});
  EXPECT_EQ(json.at("cells")[0].at("gb_per_s"), 345);
  EXPECT_EQ(json.at("cells")[0].at("rate_way"), "x/near");
  EXPECT_EQ(json.at("cells")[0].at("rate_row").at("block_size"), 4096);
  EXPECT_EQ(json.at("cells")[1].at("from"), "host");
  EXPECT_EQ(json.at("cells")[1].at("problem"), "no memory");
}

}  // namespace
}  // namespace viaduct::measure::matrix
