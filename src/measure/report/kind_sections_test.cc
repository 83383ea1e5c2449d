#include "measure/report/kind_sections.h"

#include <gtest/gtest.h>

#include <initializer_list>

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

std::string htmlOf(const Report& report) {
  std::string out;
  for (const KindSection& one : kindSections({{"a.json", report}})) out += one.title + one.html;
  return out;
}

void expectAll(const std::string& html, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_TRUE(has(html, part)) << part << "\n" << html;
}

TEST(KindSections, APipelineHasItsStagesAndTheirBars) {
  expectAll(htmlOf(sample().report),
            {"<caption><span>pipeline: file:/a,host,net,host; 1 MiB each transfer", "load alone",
             "the pipeline</span>", "1.20 GB/s", "file:/a -&gt; host", ">90%<"});
}

TEST(KindSections, AreOnThePageWithHostAndCommand) {
  const std::string page = reportPage({sample()}, "1");
  expectAll(page, {">Pipeline</h2>", "nodea", "viaduct pipeline host,net,host", "net alone",
                   "<th scope=\"col\">what</th>"});
  EXPECT_FALSE(has(page, "id=\"bandwidth\"")) << "one size gives no chart";
}

TEST(KindSections, ASwapHasItsWaysAndNotes) {
  Report report;
  for (const char* way : {"viaduct", kOneCallABlock}) {
    Row& row = report.rows.emplace_back(
        Row{.backend = "cuda", .block_size = 4096, .batch_size = 1024, .gb_per_s = 2});
    row.kind = SwapRow{.direction = "in", .order = "random", .way = way, .gpu = "GPU 0 (X)"};
  }
  report.rows[0].verdict = Verdict::kCorrupt;
  report.rows[0].why = "guard <4>";
  expectAll(htmlOf(report), {"Swap", "swap between pinned host memory and GPU 0 (X)", ">4 KiB<",
                             "CORRUPT: guard &lt;4&gt;", "not every row is valid<"});
}

TEST(KindSections, AMatrixHasATableForEachFigure) {
  Report report;
  for (const char* figure : {"rate", "latency"}) {
    Row& row = report.rows.emplace_back(Row{.backend = "cuda", .block_size = 1000, .gb_per_s = 7});
    row.latency_us = Latency{.p50 = 3};
    row.kind = MatrixRow{.from = "host", .to = "GPU 0", .figure = figure, .way = "x/near"};
  }
  const std::string html = htmlOf(report);
  expectAll(html, {"GPU matrix", "one process, GB/s of transfers of 1 KB", ">7.00 a<", ">3.00 a<",
                   "a  x/near"});
  const std::string page = reportPage({{"a.json", report}}, "1");
  EXPECT_FALSE(has(page, "id=\"bandwidth\""));
  EXPECT_TRUE(has(page, "host to GPU 0, rate of one process"));
}

TEST(KindSections, KvRowsPatternsAndTracesHaveTheirColumns) {
  Report report;
  Row row{.backend = "tcp", .block_size = 1 << 20, .gb_per_s = 1};
  row.latency_us = Latency{.p50 = 1000};
  row.kind = KvWorkload{.model = "m", .tokens = 8192};
  report.rows.push_back(row);
  row.as<KvWorkload>()->bulk = true;
  report.rows.push_back(row);
  row.kind = KvWorkload{.model = "m", .replay = KvReplayed{.trace = "t.jsonl", .requests = 9}};
  report.rows.push_back(row);
  row.kind = Operation{.size = 1000, .busbw = 2.5};
  row.scheme = "allgather";
  report.rows.push_back(row);
  expectAll(htmlOf(report), {"KV cache", ">GB/s at p50<", ">8192<", ">1.05<", "Trace", "t.jsonl",
                             "9 in ", "Pattern", ">busbw<", ">2.50<", "allgather of 1 members"});
}

TEST(KindSections, PlainBlocksHaveNone) {
  EXPECT_TRUE(kindSections({{.name = "a", .report = {.rows = {Row{.backend = "tcp"}}}}}).empty());
}

}  // namespace
}  // namespace viaduct::measure
