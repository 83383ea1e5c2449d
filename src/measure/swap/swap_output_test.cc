#include "measure/swap/swap_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "support/text.h"

namespace viaduct::measure::swap {
namespace {

using testing::has;

SwapReport sample() {
  CaseResult one{.of = {Direction::kOut, Order::kRandom, 4096}, .guard_bytes = 8192};
  one.ways[0] = {.gb_per_s = {19, 20, 21},
                 .plan_us = {3},
                 .copied_by = "kernel",
                 .ceiling = Ceiling{"copy from GPU 0 to pinned host memory", 50, 40}};
  one.ways[1] = {.gb_per_s = {2, 2, 2}, .copied_by = "copy engine"};
  return {.end = "complete",
          .blocks = 1024,
          .rounds = 3,
          .result = {.gpu = "GPU 0 (NVIDIA H100)", .cases = {one}}};
}

TEST(SwapText, HasARowForEachWay) {
  const std::string text = swapText(sample(), base::kNoLimit);
  EXPECT_TRUE(has(text, "GPU 0 (NVIDIA H100)\n1024 blocks a copy, each way in 3 rounds in turns\n"))
      << text;
  EXPECT_TRUE(
      has(text,
          "4.0 KiB  out        random  viaduct           20.0   5%     40%   10.0     3.00  "
          "kernel\n"))
      << text;
  EXPECT_TRUE(has(text, "one call a block  2.00   0%       -   1.00        -  copy engine\n"))
      << text;
  EXPECT_TRUE(has(text, "ceiling: copy from GPU 0 to pinned host memory, 50.0 GB/s\n")) << text;
  EXPECT_TRUE(has(text, "every byte of the blocks and of the guard blocks was checked\n")) << text;
}

TEST(SwapText, FitsInto80Columns) {
  SwapReport report = sample();
  CaseResult& one = report.result.cases[0];
  one.of.block_bytes = 1023 << 10U;
  one.ways[0].gb_per_s = {0.001, 123456};
  one.ways[0].plan_us = {123456};
  one.ceiling_unknown = "no memory";
  const std::string text = swapText(report, 80);
  EXPECT_TRUE(has(text, "\ndirection: out, order: random\n")) << text;
  EXPECT_TRUE(has(text, "copy engine\n")) << text;
  EXPECT_LE(testing::widestLine(text), 80U) << text;
}

TEST(SwapText, SaysWhatIsWrongAndWhatIsUnknown) {
  SwapReport report = sample();
  report.result.cases[0].wrong = "in host memory, guard block 4 is wrong";
  report.result.cases[0].ceiling_unknown = "no memory";
  const std::string text = swapText(report, base::kNoLimit);
  EXPECT_TRUE(has(text, "^ CORRUPT: in host memory, guard block 4 is wrong")) << text;
  EXPECT_TRUE(has(text, "ceiling of out: not measured: no memory\n")) << text;
  EXPECT_FALSE(has(text, "was checked")) << text;
  EXPECT_EQ(swapText({}, base::kNoLimit), "");
}

TEST(SwapJson, HasTheSame) {
  SwapReport report = sample();
  const auto json = nlohmann::json::parse(swapJson(report));
  ASSERT_EQ(json.at("rows").size(), 2U);
  const auto& row = json["rows"][0];
  EXPECT_EQ(row.at("way"), "viaduct");
  EXPECT_EQ(row.at("direction"), "out");
  EXPECT_EQ(row.at("order"), "random");
  EXPECT_EQ(row.at("gb_per_s"), 20);
  EXPECT_EQ(row.at("times_baseline"), 10);
  EXPECT_EQ(row.at("copied_by"), "kernel");
  EXPECT_EQ(row.at("ceiling").at("percent"), 40);
  EXPECT_EQ(row.at("verdict"), "ok");
  EXPECT_EQ(json["rows"][1].at("way"), "one call a block");
  report.result.cases[0].wrong = "damaged";
  EXPECT_EQ(nlohmann::json::parse(swapJson(report))["rows"][0].at("why"), "damaged");
}

}  // namespace
}  // namespace viaduct::measure::swap
