#include "measure/report/suite_text.h"

#include <gtest/gtest.h>

#include "base/text_table.h"
#include "measure/report/suite_testing.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

using testing::has;

TEST(SuiteText, HasATableAndAnAnswerForEachTest) {
  const std::string text = suiteText(someSuite(5), base::kNoLimit);
  for (const char* part :
       {"5 of 5 rounds, 1 processes on one", "Effects below 1 % are not reported\n",
        "baseline: VIADUCT_SPIN=20us\n", "better: VIADUCT_SPIN=0\n(expected: nothing at all)\n",
        "p95 us", "rails", "not measured: not built in",
        "\nbetter: helps at 2 of 2 sizes (256 B, 64 KiB)\n",
        "\nsame: no difference seen at 1 of 1 size (64 KiB)\n", "\nabsent: not built in\n",
        "\nAn answer may be wrong by chance: a 95 % interval misses one time in 20."})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  EXPECT_FALSE(has(text, "baseline: helps")) << text;
}

TEST(SuiteText, ItsTablesFitInto80Columns) {
  Suite suite = someSuite(5);
  for (SuiteRun& run : suite.runs)
    for (Row& row : run.rows) {
      row.completions_per_s = 123456;
      row.latency_us->p99 = 123456;
    }
  const std::string text = suiteText(suite, 80);
  const std::string tables = text.substr(text.find("\n\n"), text.find("\nbetter: helps"));
  EXPECT_LE(testing::widestLine(tables.substr(0, tables.find("\nbetter: helps"))), 80U) << tables;
  EXPECT_TRUE(has(text, "\n         it: helps\n")) << text;
}

TEST(SuiteText, SaysHowManyAnswersAreChanceWhereItIsOneOrMore) {
  std::vector<SuiteAnswers> answers = answersOf(someSuite(5));
  std::vector<SuiteCell>& cells = answers[1].cells;
  for (const std::size_t count : {9U, 10U, 40U}) {
    cells.resize(count, cells.front());
    answers.resize(2);
    const std::string about = count == 40 ? "About 2 of 40 answers" : "About 1 of 10 answers";
    EXPECT_EQ(has(chanceText(answers), about), count != 9) << chanceText(answers);
  }
}

TEST(SuiteText, SignsAreShown) {
  EXPECT_EQ(percentText(0.1234), "+12.3 %");
  EXPECT_EQ(percentText(-0.004), "-0.4 %");
  EXPECT_EQ(percentText({}), "-");
  EXPECT_EQ(intervalText(Improvement{.value = 0, .interval = Interval{-0.01, 0.02}}),
            "-1.0 to +2.0 %");
  EXPECT_EQ(intervalText(Improvement{}), "-");
}

TEST(SuiteText, WithoutRoundsNothingIsClaimed) {
  const std::string text = suiteText(someSuite(0), base::kNoLimit);
  EXPECT_TRUE(has(text, "better: too few rounds to tell at 2 of 2 sizes")) << text;
  EXPECT_FALSE(has(text, "chance"));
}

}  // namespace
}  // namespace viaduct::measure
