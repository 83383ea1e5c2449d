#include "meet/wait.h"

#include <gtest/gtest.h>

namespace viaduct::meet {
namespace {

using namespace std::chrono_literals;

TEST(SleepUntil, EndsAtItsTimeOrWhenItMayNotGoOn) {
  const auto begun = Clock::now();
  EXPECT_TRUE(sleepUntil(begun + 60ms, [] { return true; }));
  EXPECT_GE(Clock::now(), begun + 60ms);
  int calls = 0;
  EXPECT_FALSE(sleepUntil(Clock::now() + 1h, [&] { return ++calls < 3; }));
  EXPECT_FALSE(sleepUntil(begun, [] { return false; })) << "a time that has passed";
}

TEST(BackOff, GrowsToItsLongestPauseAndBeginsAgain) {
  BackOff pauses(10ms, 100ms);
  Duration around = 10ms;
  for (int i = 0; i < 20; ++i) {
    const Duration pause = pauses.next();
    EXPECT_GE(pause, around / 2) << i;
    EXPECT_LE(pause, around + around / 2) << i;
    around = std::min<Duration>(around + around / 2, 100ms);
  }
  pauses.reset();
  EXPECT_LE(pauses.next(), 15ms);
}

TEST(BackOff, ClientsDoNotActTogether) {
  int early = 0;
  for (int client = 0; client < 1000; ++client)
    if (BackOff(1s, 1s).next() < 1s) ++early;
  EXPECT_GT(early, 400);
  EXPECT_LT(early, 600);
}

}  // namespace
}  // namespace viaduct::meet
