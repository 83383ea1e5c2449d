#include "measure/report/test_report.h"

#include <gtest/gtest.h>

#include "measure/report/suite_testing.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

using testing::has;

RowComparison rowOfEnd(Difference difference) {
  return {.a = {.backend = "tcp", .block_size = 65536, .batch_size = 64, .gb_per_s = 10},
          .b = {.backend = "tcp", .block_size = 65536, .batch_size = 64, .gb_per_s = 9},
          .rate = RatioEstimate{.ratio = 0.9, .interval = Interval{0.88, 0.93}},
          .difference = difference};
}

Comparison someRows() {
  RowComparison slow = rowOfEnd(Difference::kSlower), broken = rowOfEnd(Difference::kUnusable);
  slow.too_slow = true;
  broken.b.verdict = Verdict::kCorrupt;
  broken.note = "B is corrupt: \"<word>\"";
  return {.rows = {slow, broken, rowOfEnd(Difference::kTooFewRuns), rowOfEnd(Difference::kFaster)}};
}

TEST(TestReport, ARowFailsIfItIsTooSlowOrBroken) {
  const auto tests = testsOf(someRows());
  ASSERT_EQ(tests.size(), 4U);
  EXPECT_EQ(tests[0].end, TestEnd::kFailed);
  EXPECT_EQ(tests[0].name, "tcp write 64 x 64 KiB");
  EXPECT_EQ(tests[0].text, "too slow: slower: B/A is 0.900, 0.880..0.930 with 95 % confidence");
  EXPECT_EQ(tests[1].end, TestEnd::kFailed);
  EXPECT_EQ(tests[2].end, TestEnd::kUnsure);
  EXPECT_EQ(tests[3].end, TestEnd::kPassed);
}

TEST(TestReport, JunitHasATestCaseForEachRow) {
  const std::string xml = junitText("viaduct compare", testsOf(someRows()));
  for (const char* part :
       {"<testsuite name=\"viaduct compare\" tests=\"4\" failures=\"2\" errors=\"0\" "
        "skipped=\"1\">",
        "<failure message=\"too slow: slower: B/A is 0.900",
        "<failure message=\"valid in A, but not in B: B is corrupt: &quot;&lt;word&gt;&quot;\"/>",
        "<skipped message=\"not enough runs", "<system-out>faster: B/A is 0.900",
        "<testcase classname=\"viaduct compare\" name=\"tcp write 64 x 64 KiB\">"})
    EXPECT_TRUE(has(xml, part)) << part << "\n" << xml;
}

TEST(TestReport, GithubGetsErrorsAndWarnings) {
  auto tests = testsOf(someRows());
  tests[0].text = "50 % slower\nthan before";
  const std::string lines = annotationText("viaduct compare", tests);
  EXPECT_TRUE(has(lines,
                  "::error title=viaduct compare%3A tcp write 64 x 64 KiB::50 %25 slower%0Athan "
                  "before\n"))
      << lines;
  EXPECT_TRUE(has(lines, "\n::warning title=viaduct compare%3A tcp write 64 x 64 KiB::not enough"))
      << lines;
  EXPECT_FALSE(has(lines, "faster")) << lines;
}

TEST(TestReport, ATestOfASuiteFailsAtTheSizeOfABadRow) {
  Suite suite = someSuite(4);
  suite.runs[1].rows[0].verdict = Verdict::kFallback;
  suite.runs[1].rows[0].why = "went over lo";
  const auto tests = testsOf(suite);
  ASSERT_EQ(tests.size(), 6U) << "2 + 2 + 1 sizes, and a test that was not measured";
  EXPECT_EQ(tests[0].end, TestEnd::kPassed);
  EXPECT_EQ(tests[2].name, "better 256 B");
  EXPECT_EQ(tests[2].end, TestEnd::kFailed);
  EXPECT_EQ(tests[2].text, "round 1: fallback: went over lo");
  EXPECT_EQ(tests[3].end, TestEnd::kPassed);
  EXPECT_EQ(tests[5].text, "not measured: not built in");
  EXPECT_FALSE(has(annotationText("viaduct suite", tests), "absent")) << "a choice is no problem";
}

}  // namespace
}  // namespace viaduct::measure
