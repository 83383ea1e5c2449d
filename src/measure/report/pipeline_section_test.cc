#include "measure/report/pipeline_section.h"

#include <gtest/gtest.h>

#include "measure/report/page.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

using testing::has;

PipelineSource sample() {
  PipelineSource out{.name = "<p>.json"};
  out.report.version = "1";
  out.report.command = "viaduct bench --pipeline host,net,host";
  out.report.pipeline = "file:/a,host,net,host";
  out.report.bytes = 1 << 20;
  out.report.rounds = 3;
  out.report.members = {{.rank = 0, .name = "a:1", .host = {.hostname = "nodea"}}};
  out.report.rates.stages = {{.name = "load",
                              .route = "file:/a -> host",
                              .way = "file/uring",
                              .alone = {2},
                              .together = {1.5},
                              .busy = {0.9}},
                             {.name = "net", .route = "host -> host", .alone = {1.25}}};
  out.report.rates.whole = {1.2};
  return out;
}

TEST(PipelineSection, HasTheStagesAndTheSlowest) {
  const std::string html = pipelineHtml(sample());
  for (const char* part : {"&lt;p&gt;.json: file:/a,host,net,host, 1.0 MiB each transfer",
                           "bottleneck: net, 1.25 GB/s alone", "file:/a -&gt; host", ">90 %<"})
    EXPECT_TRUE(has(html, part)) << part << "\n" << html;
}

TEST(PipelineSection, IsOnThePageWithItsHostAndCommand) {
  const PipelineSource source = sample();
  const std::string page = reportPage({sourceOf(source)}, "1", {}, {}, {source});
  for (const char* part :
       {"Pipeline &lt;p&gt;.json</h2>", "nodea", "bench --pipeline host,net,host"})
    EXPECT_TRUE(has(page, part)) << part << "\n" << page;
  EXPECT_FALSE(has(page, "nothing was measured"));
}

}  // namespace
}  // namespace viaduct::measure
