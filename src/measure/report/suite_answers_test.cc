#include "measure/report/suite_answers.h"

#include <gtest/gtest.h>

#include <array>

#include "measure/report/suite_testing.h"
#include "measure/result/noise_testing.h"
#include "measure/run/turns.h"

namespace viaduct::measure {
namespace {

TEST(Answers, AFifthMoreHelpsAndAnEqualRateDoesNot) {
  const auto answers = answersOf(someSuite(5));
  ASSERT_EQ(answers.size(), 4U);
  ASSERT_EQ(answers[1].cells.size(), 2U);
  const SuiteCell& small = answers[1].cells[0];
  EXPECT_EQ(small.answer, Answer::kHelps);
  ASSERT_TRUE(small.latency && small.latency->interval);
  EXPECT_NEAR(small.latency->value, 1 - 1 / 1.2, 0.03);
  EXPECT_GT(small.latency->interval->low, 0.1);
  EXPECT_LT(small.latency->interval->high, 0.25);
  const SuiteCell& large = answers[1].cells[1];
  EXPECT_EQ(large.answer, Answer::kHelps);
  EXPECT_NEAR(large.rate->value, 0.2, 0.03);
  EXPECT_EQ(answers[2].cells[0].answer, Answer::kNoneSeen);
  EXPECT_EQ(answers[1].text, "helps at 2 of 2 sizes (256 B, 64 KiB)");
  EXPECT_EQ(answers[2].text, "no difference seen at 1 of 1 size (64 KiB)");
}

TEST(Answers, ASlowerTestHurts) {
  Suite suite = someSuite(4);
  for (SuiteRun& run : suite.runs)
    if (run.test < 2) run.test = 1 - run.test;
  const auto answers = answersOf(suite);
  EXPECT_EQ(answers[1].cells[0].answer, Answer::kHurts);
  EXPECT_EQ(answers[1].cells[1].answer, Answer::kHurts);
  EXPECT_LT(answers[1].cells[0].judged()->interval->high, 0);
}

TEST(Answers, SmallSizesAreJudgedByLatencyAndLargeOnesByRate) {
  EXPECT_EQ(judgedBy(1024), JudgedBy::kLatency);
  EXPECT_EQ(judgedBy(16384), JudgedBy::kRate);
  Suite suite = someSuite(5);
  for (SuiteRun& run : suite.runs)
    for (Row& row : run.rows)
      if (run.test == 1) (sizeOf(row) == kSmall ? row.gb_per_s : row.latency_us->p95) = 1;
  EXPECT_EQ(answersOf(suite)[1].text, "helps at 2 of 2 sizes (256 B, 64 KiB)")
      << "the rate of a small size and the p95 of a large one have no say";
}

TEST(Answers, TheExpectedEffectDoesNotInfluenceTheAnswer) {
  Suite suite = someSuite(5);
  suite.tests[1].expected = "twice as slow";
  suite.tests[2].expected = "twice as fast";
  EXPECT_EQ(answersOf(suite)[1].cells[0].answer, Answer::kHelps);
  EXPECT_EQ(answersOf(suite)[2].cells[0].answer, Answer::kNoneSeen);
}

TEST(Answers, ADifferenceByChanceDoesNotHelp) {
  Suite suite = someSuite(5);
  constexpr std::array kBase{10.0, 10.4, 9.8, 10.2, 9.9}, kOwn{10.5, 9.7, 10.6, 10.1, 10.3};
  for (SuiteRun& run : suite.runs)
    if (run.test != 1) run.rows.back().gb_per_s = (run.test == 0 ? kBase : kOwn)[run.round];
  const SuiteCell cell = answersOf(suite)[2].cells[0];
  EXPECT_GT(cell.rate->value, 0.01);
  EXPECT_LT(cell.rate->interval->low, 0);
  EXPECT_EQ(cell.answer, Answer::kNoneSeen);
}

TEST(Answers, ThreeRoundsAreTooFewForAnAnswer) {
  const auto answers = answersOf(someSuite(3));
  EXPECT_EQ(answers[1].text, "too few rounds to tell at 2 of 2 sizes (256 B, 64 KiB)");
  EXPECT_FALSE(answers[1].cells[0].judged()->interval);
}

TEST(Answers, LatenciesWithinOneHistogramBucketAreEqual) {
  Suite suite = someSuite(5);
  for (SuiteRun& run : suite.runs)
    for (Row& row : run.rows) row.latency_us->p50 = run.test == 1 ? 99.7 : 100;
  EXPECT_EQ(answersOf(suite)[1].cells[0].answer, Answer::kNoneSeen);
}

TEST(Answers, AnEffectBelowTheLeastEffectIsNotReported) {
  Suite suite = someSuite(5);
  for (SuiteRun& run : suite.runs)
    for (Row& row : run.rows) {
      row.gb_per_s = run.test == 1 ? 9.99 : 10;  // 0.1 % less in every round
      row.latency_us->p50 = run.test == 1 ? 100.8 : 100;
    }
  EXPECT_EQ(answersOf(suite)[1].text, "no difference seen at 2 of 2 sizes (256 B, 64 KiB)");
  suite.least_effect = 0.0005;
  EXPECT_EQ(answersOf(suite)[1].text, "hurts at 2 of 2 sizes (256 B, 64 KiB)");
}

// Measures suites whose tests are all equal, with the noise of real machines from turn to turn.
TEST(Answers, EqualTestsGetLessThanOneWrongAnswerInTwenty) {
  constexpr std::uint32_t kRounds = 5;
  constexpr std::uint64_t kSizes = 25;
  constexpr int kSuites = 15;
  base::Random random(16);
  for (const NamedNoise& noise : kNoises) {
    std::size_t wrong = 0, all = 0;
    for (int i = 0; i < kSuites; ++i) {
      Suite suite{.tests = std::vector<SuiteTest>(4), .rounds = kRounds, .rounds_done = kRounds};
      for (std::uint32_t round = 0; round < kRounds; ++round)
        for (const std::size_t test : turnOrder(suite.tests.size(), round))
          suite.runs.push_back({.round = round, .test = test});
      for (std::uint64_t size = 1; size <= kSizes; ++size) {
        for (SuiteTest& test : suite.tests) test.sizes.push_back(size * 1024);
        const std::vector<double> rates = noise.noise(suite.runs.size(), random);
        for (std::size_t run = 0; run < rates.size(); ++run)
          suite.runs[run].rows.push_back(rowOf(size * 1024, rates[run], 100 / rates[run]));
      }
      for (const SuiteAnswers& answers : answersOf(suite))
        for (const SuiteCell& cell : answers.cells) {
          all += answers.test == 0 ? 0 : 1;
          wrong += cell.answer == Answer::kHelps || cell.answer == Answer::kHurts ? 1 : 0;
        }
    }
    EXPECT_EQ(all, 3 * kSizes * kSuites);
    EXPECT_LE(static_cast<double>(wrong), 0.05 * static_cast<double>(all)) << noise.name;
  }
}

TEST(Answers, AnInvalidRowIsNamedAndNotCompared) {
  Suite suite = someSuite(5);
  EXPECT_TRUE(allGood(suite));
  suite.runs[0].rows[1].verdict = Verdict::kFallback;  // a row of the baseline
  suite.runs[0].rows[1].why = "went over lo";
  EXPECT_FALSE(allGood(suite));
  const auto answers = answersOf(suite);
  EXPECT_EQ(answers[2].cells[0].answer, Answer::kUnusable);
  EXPECT_EQ(answers[2].cells[0].note, "a row of baseline is fallback: went over lo");
  EXPECT_EQ(answers[1].text,
            "helps at 1 of 2 sizes (256 B); cannot be used at 1 of 2 sizes (64 KiB)");
}

TEST(Answers, ATestWithTheBaselinesPathIsIdle) {
  Suite suite = someSuite(5);
  suite.tests[1].shows = "rails";
  const auto idle = answersOf(suite)[1];
  EXPECT_EQ(idle.text, "does nothing here at 2 of 2 sizes (256 B, 64 KiB)");
  EXPECT_EQ(idle.cells[1].note, "rails: 2, as in the baseline");
  EXPECT_TRUE(idle.cells[1].rate) << "the figures are shown all the same";
  for (SuiteRun& run : suite.runs)
    if (run.test == 1) run.rows[1].path.pop_back();
  EXPECT_EQ(answersOf(suite)[1].text,
            "helps at 1 of 2 sizes (64 KiB); does nothing here at 1 of 2 sizes (256 B)");
}

TEST(Answers, FiguresAreMediansAndRailsAreCounted) {
  Suite suite = someSuite(5);
  const SuiteFigures figures = answersOf(suite)[0].cells[1].figures;
  EXPECT_NEAR(*figures.gb_per_s, 10, 0.2);
  EXPECT_NEAR(*figures.p95_us, 1.2 * *figures.p50_us, 1e-9);
  EXPECT_DOUBLE_EQ(*figures.cores_busy, 1.5);
  EXPECT_DOUBLE_EQ(*figures.completions_per_s, 50);
  EXPECT_EQ(figures.rails, "2");
  for (ProvenShare& share : suite.runs[0].rows[1].path) share.device = "lo";
  EXPECT_EQ(answersOf(suite)[0].cells[1].figures.rails, "2") << "however many devices they come to";
  suite.runs[0].rows[1].path[0].bytes = 0;
  EXPECT_EQ(answersOf(suite)[0].cells[1].figures.rails, "1-2");
}

TEST(Answers, ATestThatIsNotMeasuredHasAReason) {
  const auto answers = answersOf(someSuite(5));
  EXPECT_TRUE(answers[3].cells.empty());
  EXPECT_EQ(answers[3].text, "not built in");
}

}  // namespace
}  // namespace viaduct::measure
