#include "measure/workload/generate_trace.h"

#include <gtest/gtest.h>

#include "measure/workload/read_trace.h"
#include "measure/workload/trace_format.h"

namespace viaduct::measure {
namespace {

TEST(GenerateTrace, HasTheStatisticsOfTheConversationTrace) {
  const auto all = statisticsOf(generateTrace({.requests = 12'031}));
  EXPECT_NEAR(all.input_mean, 12'035, 600);
  EXPECT_NEAR(all.input_p50, 6909, 350);
  EXPECT_NEAR(all.input_p90, 27'367, 1400);
  EXPECT_NEAR(all.input_p99, 85'401, 8500);
  EXPECT_LE(all.input_max, 126'195);
  EXPECT_NEAR(all.output_mean, 343, 17);
  EXPECT_NEAR(all.requests_per_s, 3.40, 0.17);
  EXPECT_NEAR(all.prefix_hits, 0.366, 0.02);
}

TEST(GenerateTrace, HasTheStatisticsOfTheSyntheticTrace) {
  const auto all = statisticsOf(generateTrace({.shape = TraceShape::kSynthetic, .requests = 3993}));
  EXPECT_NEAR(all.input_mean, 15'325, 1530);
  EXPECT_NEAR(all.input_p50, 11'587, 1160);
  EXPECT_NEAR(all.input_p90, 38'615, 3860);
  EXPECT_NEAR(all.output_mean, 149, 15);
  EXPECT_NEAR(all.requests_per_s, 3.91, 0.39);
  EXPECT_NEAR(all.prefix_hits, 0.640, 0.02);
}

TEST(GenerateTrace, TheSeedDecidesTheTraceAndEachLineCanBeRead) {
  const TraceRecipe recipe{.requests = 200, .seed = 5, .divide = 10};
  const Trace trace = generateTrace(recipe);
  EXPECT_EQ(generateTrace(recipe), trace);
  TraceRecipe other = recipe;
  other.seed = 6;
  EXPECT_NE(generateTrace(other), trace);
  for (const auto& format : kTraceFormats) {
    const Trace written = inFormat(trace, format.value);
    const auto read = parseTrace(textOf(written), "generated");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->trace, written) << format.word;
    EXPECT_TRUE(read->remarks.empty()) << read->remarks.front();
  }
}

}  // namespace
}  // namespace viaduct::measure
