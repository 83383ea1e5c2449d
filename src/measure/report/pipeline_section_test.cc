#include "measure/report/pipeline_section.h"

#include <gtest/gtest.h>

#include "measure/report/page.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

using testing::has;

Source sample() {
  Report report{.version = "1", .command = "viaduct pipeline host,net,host"};
  report.environment.members = {{.rank = 0, .name = "a:1", .host = {.hostname = "nodea"}}};
  const auto add = [&](StagesRun run, std::vector<StageResult> stages, std::vector<double> whole) {
    Row& row = report.rows.emplace_back(
        Row{.backend = "file", .block_size = 1 << 20, .gb_per_s_parts = std::move(whole)});
    row.kind =
        PipelineRow{.pipeline = "file:/a,host,net,host", .run = run, .stages = std::move(stages)};
  };
  add(StagesRun::kAlone,
      {{.name = "load", .route = "file:/a -> host", .path = "file/uring", .gb_per_s = {2}}}, {});
  add(StagesRun::kAlone, {{.name = "net", .route = "host -> host", .gb_per_s = {1.25}}}, {});
  add(StagesRun::kWhole, {{.name = "load", .busy = {0.9}}, {.name = "net", .busy = {0.5}}}, {1.2});
  return {.name = "<p>.json", .report = std::move(report)};
}

TEST(PipelineSection, HasTheStagesAndTheSlowest) {
  const std::string html = pipelineHtml(sample());
  for (const char* part : {"&lt;p&gt;.json: file:/a,host,net,host, 1 MiB each transfer",
                           "bottleneck: net, 1.25 GB/s alone", "file:/a -&gt; host", ">90 %<"})
    EXPECT_TRUE(has(html, part)) << part << "\n" << html;
}

TEST(PipelineSection, IsOnThePageWithItsHostAndCommand) {
  const std::string page = reportPage({sample()}, "1");
  for (const char* part :
       {"Pipeline &lt;p&gt;.json</h2>", "nodea", "viaduct pipeline host,net,host"})
    EXPECT_TRUE(has(page, part)) << part << "\n" << page;
}

TEST(PipelineSection, IsAbsentWithoutAPipeline) {
  EXPECT_EQ(pipelineHtml({.name = "a", .report = {.rows = {Row{.backend = "tcp"}}}}), "");
}

}  // namespace
}  // namespace viaduct::measure
