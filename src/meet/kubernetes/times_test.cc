#include "meet/kubernetes/times.h"

#include <gtest/gtest.h>

#include "meet/kubernetes/pace.h"

namespace viaduct::meet::kubernetes {
namespace {

using namespace std::chrono_literals;

TEST(KubernetesTimes, AMicroTimeRoundTrips) {
  const WallTime when{1'790'000'000'000'007us};
  EXPECT_EQ(microTime(when), "2026-09-21T14:13:20.000007Z");
  EXPECT_EQ(parseMicroTime(microTime(when)), when);
  EXPECT_EQ(microTime(WallTime{}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(parseMicroTime("2026-09-21T14:13:20Z"), WallTime{1'790'000'000s});
  EXPECT_EQ(parseMicroTime("2026-09-21T14:13:20.5Z"), WallTime{1'790'000'000'500'000us});
  EXPECT_EQ(parseMicroTime("2026-09-21T14:13:20.123456789Z"), WallTime{1'790'000'000'123'456us});
}

TEST(KubernetesTimes, OtherTextsAreNoMicroTime) {
  for (const char* text : {"", "Z", "2026-09-21", "2026-09-21T14:13:20", "2026-13-21T14:13:20Z",
                           "2026-02-30T14:13:20Z", "2026-09-21T24:13:20Z", "2026-09-21T14:13:20.Z",
                           "2026-09-21T14:13:20.1x2Z", "2026-09-21T14:13:20+02:00",
                           "2026-09-21 14:13:20Z", "2026-09-21T1+:13:20Z"})
    EXPECT_FALSE(parseMicroTime(text)) << text;
}

TEST(KubernetesTimes, TheDateOfAnAnswer) {
  EXPECT_EQ(parseHttpDate("Mon, 21 Sep 2026 14:13:20 GMT"), WallTime{1'790'000'000s});
  for (const char* text : {"", "Mon, 21 Foo 2026 14:13:20 GMT", "Mon, 21 Sep 2026 14:13:20",
                           "Mon, 21 Sep 2026 14:13:20 GMT ", "21 Sep 2026 14:13:20 GMT"})
    EXPECT_FALSE(parseHttpDate(text)) << text;
}

TEST(KubernetesPace, TenGoAtOnceAndThenOneEach200ms) {
  Pace pace;
  const auto now = Clock::now();
  for (int i = 0; i < Pace::kAtOnce; ++i) EXPECT_EQ(pace.next(now), now) << i;
  EXPECT_EQ(pace.next(now), now + 200ms);
  EXPECT_EQ(pace.next(now), now + 400ms);
  EXPECT_EQ(pace.next(now + 1s), now + 1s) << "five have become free, two of them were used before";
  const auto later = now + 1min;
  for (int i = 0; i < Pace::kAtOnce; ++i) EXPECT_EQ(pace.next(later), later) << i;
  EXPECT_GT(pace.next(later), later);
}

}  // namespace
}  // namespace viaduct::meet::kubernetes
