#include "measure/run/matrix.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace viaduct::measure::matrix {
namespace {

SeenGpu gpu(std::uint32_t number, std::vector<std::uint32_t> peers) {
  return {
      .number = number, .name = fmt::format("GPU {} (Fake)", number), .peers = std::move(peers)};
}

TEST(GpuMatrix, HasEachOrderedPairAndEachGpuWithItselfAndWithTheHost) {
  const std::vector<Cell> cells = cellsOf({.gpus = {gpu(0, {}), gpu(3, {})}, .processes = {1, 2}});
  ASSERT_EQ(cells.size(), 16U);  // 3 x 3 pairs without host to host, in one process and in two
  std::vector<std::string> pairs;
  for (const Cell& cell : cells)
    pairs.push_back(
        fmt::format("{} {} {}", placeName(cell.from), placeName(cell.to), cell.processes));
  for (const char* one : {"host GPU 0 1", "GPU 0 host 1", "GPU 0 GPU 0 1", "GPU 0 GPU 3 1",
                          "GPU 3 GPU 0 1", "GPU 3 GPU 3 1", "GPU 0 GPU 3 2"})
    EXPECT_EQ(std::ranges::count(pairs, one), 1) << one;
}

TEST(GpuMatrix, SaysWhichGpusReachOneAnother) {
  EXPECT_EQ(gpuWords({gpu(0, {1, 2}), gpu(1, {})}),
            (std::vector<std::string>{"GPU 0 (Fake), peer access to GPU 1, 2", "GPU 1 (Fake)"}));
  EXPECT_EQ(gpuWords({gpu(0, {})}).size(), 2U) << "there is no pair";
}

}  // namespace
}  // namespace viaduct::measure::matrix
