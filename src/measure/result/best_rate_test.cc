#include "measure/result/best_rate.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

Row rated(std::uint64_t block, double rate, Verdict verdict = Verdict::kOk) {
  return {.backend = "tcp", .block_size = block, .gb_per_s = rate, .verdict = verdict};
}

double bestOf(const std::vector<Row>& rows) {
  const auto best = bestRow(rows);
  return best ? *best->gb_per_s : -1;
}

TEST(BestRate, IsTheHighestMedianOfRowsThatCanBeUsed) {
  EXPECT_EQ(bestOf({}), -1);
  EXPECT_EQ(bestOf({rated(1, 2), rated(2, 3), rated(4, 1)}), 3);
  EXPECT_EQ(bestOf({rated(1, 2), rated(2, 3, Verdict::kInvalid)}), 2);
  EXPECT_EQ(bestOf({rated(1, 2, Verdict::kUnproven)}), 2);
  // Repeats of a row count once.
  EXPECT_EQ(bestOf({rated(1, 5), rated(1, 4.5), rated(1, 4)}), 4.5);
  EXPECT_EQ(bestOf({rated(1, 5), rated(1, 4)}), 4.5);
  EXPECT_EQ(bestOf({rated(1, 5), rated(1, 9, Verdict::kCorrupt), rated(1, 4)}), 4.5);
}

TEST(BestRate, RowsThatServeOthersHaveNone) {
  Row stage = rated(1, 2), together = rated(1, 9), whole = rated(1, 1);
  stage.kind = PipelineRow{.run = StagesRun::kAlone, .rows = 3};
  together.kind = PipelineRow{.run = StagesRun::kTogether, .rows = 3};
  whole.kind = PipelineRow{.run = StagesRun::kWhole, .rows = 3};
  EXPECT_EQ(bestOf({stage, together, whole}), 1);
  stage.as<PipelineRow>()->rows = 1;
  EXPECT_EQ(bestOf({stage}), 2) << "the only stage";
  Row paged = rated(1, 1), bulk = rated(1, 2);
  paged.kind = KvWorkload{.model = "m"};
  bulk.kind = KvWorkload{.model = "m", .bulk = true};
  bulk.scheme = "kv-bulk";
  EXPECT_EQ(bestOf({bulk, paged}), 1);
  Row ours = rated(1, 1), theirs = rated(1, 2);
  ours.kind = SwapRow{.way = "viaduct"};
  theirs.kind = SwapRow{.way = kOneCallABlock};
  EXPECT_EQ(bestOf({ours, theirs}), 1);
}

TEST(BestRate, RepeatsBecomeOneRowWithTheirMedians) {
  Row low = rated(1, 1), high = rated(1, 3), middle = rated(1, 2);
  low.latency_us = {.p50 = 30, .p99 = 300};
  middle.latency_us = {.p50 = 10, .p99 = 400};
  high.latency_us = {.p50 = 20, .p99 = 100};
  low.remark = "low", middle.remark = "middle";
  const std::vector<Row> found = withoutRepeats(std::vector{low, rated(2, 7), high, middle});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].gb_per_s, 2);
  EXPECT_EQ(found[0].latency_us->p50, 20);
  EXPECT_EQ(found[0].latency_us->p99, 300);
  EXPECT_EQ(found[0].remark, "middle");
  EXPECT_EQ(found[1].block_size, 2U);
}

}  // namespace
}  // namespace viaduct::measure
