#include "measure/result/pipeline_rates.h"

#include <gtest/gtest.h>

namespace viaduct::measure::pipeline {
namespace {

TEST(PipelineRates, TheSlowestStageIsFoundByMedians) {
  const PipelineRates rates{
      .stages = {{.name = "load", .alone = {2, 9, 2}, .together = {1.5, 1.5, 1.5}},
                 {.name = "net", .alone = {4, 4, 4}, .together = {1.2, 1.2, 1.2}},
                 {.name = "store", .alone = {1.6, 1.5, 0.1}, .together = {1.3, 1.4, 9}}},
      .whole = {1.2, 1.1, 1.3}};
  const Conclusions found = conclude(rates);
  ASSERT_TRUE(found.alone && found.together);
  EXPECT_EQ(found.alone->stage, 2U);
  EXPECT_DOUBLE_EQ(found.alone->gb_per_s, 1.5);
  EXPECT_DOUBLE_EQ(*found.alone->efficiency, 0.8);
  EXPECT_EQ(found.together->stage, 1U);
  EXPECT_DOUBLE_EQ(*found.together->efficiency, 1.0);
  EXPECT_TRUE(found.alone->ties.empty());
}

TEST(PipelineRates, StagesThatAreNearlyAsSlowAreNamed) {
  const PipelineRates rates{.stages = {{.name = "load", .alone = {1.0}},
                                       {.name = "net", .alone = {1.06}},
                                       {.name = "store", .alone = {1.04}}}};
  const Conclusions found = conclude(rates);
  ASSERT_TRUE(found.alone);
  EXPECT_EQ(found.alone->ties, std::vector<std::size_t>{2});
  EXPECT_FALSE(found.alone->efficiency) << "there is no pipeline";
  EXPECT_FALSE(found.together);
}

TEST(PipelineRates, TheBusiestStageIsFoundByMedians) {
  EXPECT_EQ(conclude({.stages = {{.busy = {0.5, 0.6, 0.9}}, {.busy = {0.7, 0.1, 0.8}}}}).busiest,
            1U);
  EXPECT_FALSE(conclude({.stages = {{.alone = {1}}}}).busiest) << "the peer did not count it";
}

TEST(PipelineRates, NothingFollowsFromNoRound) {
  EXPECT_FALSE(conclude({}).alone);
  EXPECT_FALSE(conclude({.stages = {{.name = "load"}}}).alone);
  EXPECT_FALSE(conclude({.stages = {{.name = "load", .alone = {1}}, {.name = "net"}}}).alone)
      << "a stage without a rate may be the slowest";
}

}  // namespace
}  // namespace viaduct::measure::pipeline
