#include "measure/pipeline/pipeline_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "support/text.h"

namespace viaduct::measure::pipeline {
namespace {

PipelineReport sample() {
  return {.version = "1",
          .started = "2026-11-26T01:00:00Z",
          .command = "viaduct bench --pipeline x",
          .pipeline = "file:/a,host,net,host,file:/b",
          .members = {{.rank = 0, .name = "a:1", .host = {.hostname = "a"}},
                      {.rank = 1, .name = "b:2", .host = {.hostname = "b"}}},
          .bytes = std::uint64_t{128} << 20U,
          .rounds = 3,
          .checked = 24,
          .rates = {.stages = {{.name = "load",
                                .route = "file:/a -> host",
                                .way = "file/uring",
                                .alone = {2, 2, 2},
                                .together = {1.3, 1.3, 1.3},
                                .busy = {0.5, 0.6, 0.7}},
                               {.name = "net",
                                .route = "host -> host",
                                .way = "tcp/socket",
                                .alone = {4, 4, 4},
                                .together = {1.2, 1.2, 1.2},
                                .busy = {0.3, 0.3, 0.3}},
                               {.name = "store",
                                .route = "host -> file:/b",
                                .way = "file/uring",
                                .alone = {1.5, 1.5, 1.5},
                                .together = {1.25, 1.25, 1.25},
                                .busy = {0.97, 0.98, 0.99}}},
                    .whole = {1.2, 1.2, 1.1},
                    .path = "file/uring -> host -> tcp/socket"}};
}

TEST(PipelineOutput, TheTableNamesTheBottleneckAndTheEfficiency) {
  EXPECT_EQ(
      pipelineText(sample(), base::kNoLimit),
      "pipeline: file:/a,host,net,host,file:/b\n"
      "128.0 MiB each transfer, median of 3 rounds\n\n"
      "stage  from -> to       path        alone GB/s  +/-  together  +/-  pipeline  +/-  busy\n"
      "load   file:/a -> host  file/uring        2.00   0%      1.30   0%      1.20   0%   60%\n"
      "net    host -> host     tcp/socket        4.00   0%      1.20   0%      1.20   0%   30%\n"
      "store  host -> file:/b  file/uring        1.50   0%      1.25   0%      1.20   0%   98%\n"
      "\n"
      "bottleneck: store, 1.50 GB/s alone\n"
      "together, another stage is the slowest: net, 1.20 GB/s together (store within 5 % of "
      "it)\n"
      "busiest in the pipeline: store, 98% of the time\n"
      "efficiency: 80 % of the slowest stage alone, 100 % of the slowest stage together\n"
      "24 transfers checked, every byte\n");
}

TEST(PipelineOutput, TheTableFitsInto80Columns) {
  PipelineReport report = sample();
  report.rates.stages[0].route = "file:/nvme/models/a-model-with-a-long-name/weights.bin -> host";
  report.rates.stages[0].alone = {0.00012, 123456};
  const std::string text = pipelineText(report, 80);
  const std::string table = text.substr(0, text.find("\n\nbottleneck"));
  EXPECT_LE(testing::widestLine(table), 80U) << table;
  EXPECT_TRUE(testing::has(
      table,
      "\n         from -> to: file:/nvme/models/a-model-with-a-long-name/weights.bin ->\n"
      "         host, path: file/uring\n"))
      << table;
}

TEST(PipelineOutput, AnEfficiencyAboveOneIsExplained) {
  PipelineReport report = sample();
  report.rates.whole = {1.7};
  const std::string text = pipelineText(report, base::kNoLimit);
  EXPECT_NE(text.find("above 100 % alone: the rates change"), std::string::npos) << text;
  EXPECT_NE(text.find("above 100 % together: in the pipeline,"), std::string::npos) << text;
}

TEST(PipelineOutput, OneStageHasNeitherPipelineNorEfficiency) {
  PipelineReport report = sample();
  report.rates.stages.resize(1);
  report.rates.stages[0].together.clear();
  report.rates.stages[0].busy.clear();
  report.rates.whole.clear();
  report.end = "interrupted";
  const std::string text = pipelineText(report, base::kNoLimit);
  EXPECT_NE(text.find("2.00   0%         -    -         -    -     -\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("3 rounds, interrupted\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("efficiency"), std::string::npos) << text;
}

TEST(PipelineOutput, NothingIsPrintedWithoutARound) {
  PipelineReport report = sample();
  for (StageRates& stage : report.rates.stages) stage.alone.clear();
  EXPECT_EQ(pipelineText(report, base::kNoLimit), "");
}

TEST(PipelineOutput, TheJsonHasEveryRound) {
  const auto json = nlohmann::json::parse(pipelineJson(sample()));
  EXPECT_EQ(json.at("format"), "viaduct-pipeline/1");
  EXPECT_EQ(json.at("bytes"), 134217728);
  EXPECT_EQ(json.at("members")[1].at("hostname"), "b");
  EXPECT_EQ(json.at("stages")[2].at("name"), "store");
  EXPECT_EQ(json.at("stages")[2].at("alone").at("gb_per_s"), 1.5);
  EXPECT_EQ(json.at("stages")[2].at("alone").at("rounds").size(), 3U);
  EXPECT_EQ(json.at("stages")[2].at("busy").at("part"), 0.98);
  EXPECT_EQ(json.at("whole").at("gb_per_s"), 1.2);
  EXPECT_EQ(json.at("slowest_alone").at("stage"), "store");
  EXPECT_NEAR(json.at("slowest_alone").at("efficiency").get<double>(), 0.8, 1e-9);
  EXPECT_EQ(json.at("slowest_together").at("ties"), nlohmann::json::array({"store"}));
}

TEST(PipelineOutput, TheJsonIsReadAgain) {
  const PipelineReport report = sample();
  const std::string json = pipelineJson(report);
  EXPECT_TRUE(isPipelineJson(json));
  const auto read = pipelineFromJson(json, "p.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(pipelineText(*read, base::kNoLimit), pipelineText(report, base::kNoLimit));
  EXPECT_EQ(read->members.size(), report.members.size());
  const auto cut =
      pipelineFromJson(R"({"format": "viaduct-pipeline/1", "version": "1"})", "p.json");
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().text().find("p.json"), std::string::npos) << cut.error().text();
}

}  // namespace
}  // namespace viaduct::measure::pipeline
