#include "measure/proof/meter.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kGigabyte = 1'000'000'000;

class MeterTest : public ::testing::Test {
 protected:
  const Clock::time_point t_ = Clock::now();
};

TEST_F(MeterTest, IntervalsCountOnlyTheTimeAndTheBytesOfRounds) {
  Meter meter(1s);
  meter.begin(t_, 7);  // bytes moved before the round do not count
  EXPECT_EQ(meter.due(), t_ + 1s);
  EXPECT_FALSE(meter.look(t_ + 500ms, 7 + kGigabyte));
  EXPECT_DOUBLE_EQ(meter.gbPerSecond(), 2);
  EXPECT_EQ(meter.look(t_ + 1s, 7 + 2 * kGigabyte), (RateInterval{0, 1, 2, 2 * kGigabyte}));
  EXPECT_FALSE(meter.look(t_ + 1500ms, 7 + 3 * kGigabyte));
  meter.end();
  EXPECT_EQ(meter.due(), Clock::time_point::max());
  EXPECT_FALSE(meter.look(t_ + 5s, 0)) << "between rounds";
  // A pause of 10 s, in which untimed transfers moved 5 GB.
  meter.begin(t_ + 11500ms, 7 + 8 * kGigabyte);
  EXPECT_EQ(meter.due(), t_ + 12s);
  EXPECT_EQ(meter.look(t_ + 12s, 7 + 11 * kGigabyte), (RateInterval{1, 2, 4, 4 * kGigabyte}));
  EXPECT_FALSE(meter.look(t_ + 12250ms, 7 + 12 * kGigabyte));
  meter.end();
  EXPECT_EQ(meter.rest(), (RateInterval{2, 2.25, 4, kGigabyte}));
  EXPECT_NEAR(meter.gbPerSecond(), 7 / 2.25, 1e-9);
}

TEST_F(MeterTest, AfterALateLookTheNextIntervalEndsOnTime) {
  Meter meter(1s);
  meter.begin(t_, 0);
  EXPECT_EQ(meter.look(t_ + 3500ms, 7 * kGigabyte), (RateInterval{0, 3.5, 2, 7 * kGigabyte}));
  EXPECT_EQ(meter.due(), t_ + 4s);
}

TEST_F(MeterTest, NoRestRemainsIfTheRowEndsWithAnInterval) {
  Meter meter(1s);
  meter.begin(t_, 0);
  EXPECT_TRUE(meter.look(t_ + 1s, kGigabyte));
  meter.end();
  EXPECT_FALSE(meter.rest());
}

TEST_F(MeterTest, WithoutIntervalsTheRateIsKnown) {
  Meter meter(0s);
  meter.begin(t_, 0);
  EXPECT_EQ(meter.due(), Clock::time_point::max());
  EXPECT_FALSE(meter.look(t_ + 2s, kGigabyte));
  EXPECT_FALSE(meter.rest());
  EXPECT_DOUBLE_EQ(meter.gbPerSecond(), 0.5);
}

}  // namespace
}  // namespace viaduct::measure
