#include "measure/report/suite_section.h"

#include <gtest/gtest.h>

#include "measure/report/page.h"
#include "measure/report/suite_testing.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

using testing::has;

TEST(SuiteSection, HasAnswersAChartAndATableForEachTest) {
  const std::string html = suiteHtml({"s.json", someSuite(5)}, "suitea");
  for (const char* part :
       {"s.json: 5 of 5 rounds", "<b>better</b>: helps at 2 of 2 sizes (256 B, 64 KiB)",
        "<b>absent</b>: not built in", "id=\"suitea-wide-t\"", "✓ helps</span>",
        "better: VIADUCT_SPIN=0 (expected: nothing at all)", "no difference seen</td>",
        "better, 64 KiB: +", "class=\"whisker\"", "may be wrong by chance"})
    EXPECT_TRUE(has(html, part)) << part << "\n" << html;
  EXPECT_FALSE(has(html, "✗ hurts"));
}

TEST(SuiteSection, ATestThatHurtsIsConspicuous) {
  Suite suite = someSuite(5);
  for (SuiteRun& run : suite.runs)
    if (run.test < 2) run.test = 1 - run.test;
  suite.runs[2].rows[0].verdict = Verdict::kCorrupt;  // a row of "same"
  suite.runs[2].rows[0].why = "<b>";
  const std::string html = suiteHtml({"s.json", suite}, "suitea");
  EXPECT_TRUE(has(html, "✗ hurts</strong>"));
  EXPECT_TRUE(has(html, "✗ cannot be used</strong> a row of same is corrupt: &lt;b&gt;"));
}

TEST(SuiteSection, RowsOfEachTestAreASourceOfTheOtherSections) {
  Suite suite = someSuite(5);
  suite.end = "5 of 6 rounds";
  const auto sources = sourcesOf({"s.json", suite});
  ASSERT_EQ(sources.size(), 3U);
  EXPECT_EQ(sources[1].name, "s.json: better");
  EXPECT_EQ(sources[1].report.rows.size(), 10U);
  EXPECT_EQ(sources[1].report.settings.back(), (Option{"VIADUCT_SPIN", "0"}));
  EXPECT_EQ(sources[0].report.end, "5 of 6 rounds");
  EXPECT_EQ(sources[1].report.end, "complete");
}

TEST(SuiteSection, IsOnThePageBesideOtherFiles) {
  const SuiteSource source{"s.json", someSuite(5)};
  auto sources = sourcesOf(source);
  sources.push_back({"bench.json", Report{.rows = {rowOf(kLarge, 1, 1)}}});
  const std::string page = reportPage(sources, "1", {source, source});
  for (const char* part : {"<h2 id=\"suitea\">Suite s.json", "<h2 id=\"suiteb\">", "s.json: better",
                           "bench.json", "≠ VIADUCT_SPIN"})
    EXPECT_TRUE(has(page, part)) << part;
}

}  // namespace
}  // namespace viaduct::measure
