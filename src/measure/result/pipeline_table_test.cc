#include "measure/result/pipeline_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/text_table.h"
#include "support/text.h"

namespace viaduct::measure::pipeline {
namespace {

std::string textOf(std::span<const Row> rows, std::size_t width) {
  TextSink sink(width);
  show(rows, sink);
  return sink.text();
}

Row rowOf(StagesRun run, std::vector<StageResult> stages, std::vector<double> parts = {}) {
  Row row{.backend = "file",
          .scheme = "pipeline",
          .block_size = std::uint64_t{128} << 20U,
          .gb_per_s_parts = std::move(parts),
          .checks = Checks{.transfers = 3}};
  row.kind = PipelineRow{.pipeline = "file:/a,host,net,host,file:/b",
                         .run = run,
                         .rows = 5,
                         .stages = std::move(stages)};
  return row;
}

std::vector<Row> sample(std::vector<double> whole = {1.2, 1.2, 1.1}) {
  const StageResult load{.name = "load", .route = "file:/a -> host", .path = "file/uring"},
      net{.name = "net", .route = "host -> host", .path = "tcp/socket"},
      store{.name = "store", .route = "host -> file:/b", .path = "file/uring"};
  const auto with = [](StageResult stage, std::vector<double> rates,
                       std::vector<double> busy = {}) {
    stage.gb_per_s = std::move(rates);
    stage.busy = std::move(busy);
    return stage;
  };
  return {rowOf(StagesRun::kAlone, {with(load, {2, 2, 2})}),
          rowOf(StagesRun::kAlone, {with(net, {4, 4, 4})}),
          rowOf(StagesRun::kAlone, {with(store, {1.5, 1.5, 1.5})}),
          rowOf(StagesRun::kTogether, {with(load, {1.3, 1.3, 1.3}), with(net, {1.2, 1.2, 1.2}),
                                       with(store, {1.25, 1.25, 1.25})}),
          rowOf(StagesRun::kWhole,
                {with(load, {}, {0.5, 0.6, 0.7}), with(net, {}, {0.3, 0.3, 0.3}),
                 with(store, {}, {0.97, 0.98, 0.99})},
                std::move(whole))};
}

std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

TEST(PipelineTable, HasTheStagesWithTheirRates) {
  EXPECT_EQ(
      textOf(sample(), base::kNoLimit),
      "pipeline: file:/a,host,net,host,file:/b\n"
      "128 MiB each transfer, median of 3 rounds\n\n"
      "stage  from -> to       path        alone GB/s  +/-  together  +/-  pipeline  +/-  busy\n"
      "load   file:/a -> host  file/uring        2.00   0%      1.30   0%      1.20   0%   60%\n"
      "net    host -> host     tcp/socket        4.00   0%      1.20   0%      1.20   0%   30%\n"
      "store  host -> file:/b  file/uring        1.50   0%      1.25   0%      1.20   0%   98%\n");
}

TEST(PipelineTable, TheConclusionsNameTheBottleneckAndTheEfficiency) {
  EXPECT_EQ(joined(conclusionsOf(sample())),
            "bottleneck: store, 1.50 GB/s alone\n"
            "together, another stage is the slowest: net, 1.20 GB/s together (store within 5 % of "
            "it)\n"
            "busiest in the pipeline: store, 98% of the time\n"
            "efficiency: 80 % of the slowest stage alone, 100 % of the slowest stage together\n"
            "15 transfers checked, every byte\n");
}

TEST(PipelineTable, FitsInto80Columns) {
  std::vector<Row> rows = sample();
  StageResult& load = rows[0].as<PipelineRow>()->stages[0];
  load.route = "file:/nvme/models/a-model-with-a-long-name/weights.bin -> host";
  load.gb_per_s = {0.00012, 123456};
  rows[4].remark = "interrupted after 0.9 of 1.5 s";
  const std::string text = textOf(rows, 80);
  EXPECT_LE(testing::widestLine(text), 80U) << text;
  EXPECT_TRUE(testing::has(
      text,
      "\n         from -> to: file:/nvme/models/a-model-with-a-long-name/weights.bin ->\n"
      "         host, path: file/uring\n"))
      << text;
  EXPECT_TRUE(testing::has(text, "the pipeline: interrupted after 0.9 of 1.5 s")) << text;
}

TEST(PipelineTable, AnEfficiencyAboveOneIsExplained) {
  const std::string text = joined(conclusionsOf(sample({1.7})));
  EXPECT_NE(text.find("above 100 % alone: the rates change"), std::string::npos) << text;
  EXPECT_NE(text.find("above 100 % together: in the pipeline,"), std::string::npos) << text;
}

TEST(PipelineTable, OneStageHasNeitherPipelineNorEfficiency) {
  std::vector<Row> rows = sample();
  rows.resize(1);
  const std::string text = joined(conclusionsOf(rows));
  EXPECT_TRUE(testing::has(text, "bottleneck: load, 2.00 GB/s alone\n")) << text;
  EXPECT_EQ(text.find("efficiency"), std::string::npos) << text;
}

TEST(PipelineTable, WithoutAWholeRoundThereIsNoText) {
  EXPECT_EQ(textOf({}, 80), "");
  EXPECT_TRUE(conclusionsOf({}).empty());
}

TEST(PipelineTable, AWrongRowIsNamed) {
  std::vector<Row> rows = sample();
  rows[2].verdict = Verdict::kCorrupt;
  rows[2].why = "damaged bytes at the end of store";
  EXPECT_TRUE(testing::has(textOf(rows, base::kNoLimit),
                           "store alone: CORRUPT: damaged bytes at the end of store"));
}

}  // namespace
}  // namespace viaduct::measure::pipeline
