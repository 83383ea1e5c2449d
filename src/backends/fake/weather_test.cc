#include "backends/fake/weather.h"

#include <gtest/gtest.h>

namespace viaduct::fake {
namespace {

TEST(Weather, ReadsEveryKind) {
  const auto weather = parseWeather("seed=7,delay_us=50,reorder=0.5,lose_rail=0.25,kill_peer=1");
  ASSERT_TRUE(weather) << weather.error().text();
  EXPECT_EQ(weather->seed, 7U);
  EXPECT_EQ(weather->delay, std::chrono::microseconds(50));
  EXPECT_EQ(weather->reorder, 0.5);
  EXPECT_EQ(weather->lose_rail, 0.25);
  EXPECT_EQ(weather->kill_peer, 1.0);
  const auto harm = parseWeather(
      "corrupt=0.1,swap=0.2,shift=0.3,stale=0.4,far=1,pose=1,rails=4,nodes=2,hang=0.5");
  ASSERT_TRUE(harm) << harm.error().text();
  EXPECT_EQ(harm->corrupt + harm->swap + harm->shift, 0.1 + 0.2 + 0.3);
  EXPECT_EQ(harm->stale, 0.4);
  EXPECT_TRUE(harm->far && harm->pose);
  EXPECT_EQ(harm->rails, 4U);
  EXPECT_EQ(harm->nodes, 2U);
  EXPECT_EQ(harm->hang, 0.5);
}

TEST(Weather, SaysWhichPartIsWrong) {
  for (const char* text :
       {"rain", "rain=1", "seed=x", "reorder=2", "lose_rail=-1", "rails=9", "seed=1,,x"}) {
    const auto weather = parseWeather(text);
    ASSERT_FALSE(weather) << text;
    EXPECT_NE(weather.error().detail.find('"'), std::string::npos) << weather.error().text();
  }
}

}  // namespace
}  // namespace viaduct::fake
