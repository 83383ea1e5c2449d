#include "measure/report/scale.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

AxisRange range(double low, double high) { return {low, high, false}; }

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> out;
  for (const Tick& t : ticks) out.push_back(t.label);
  return out;
}
using Labels = std::vector<std::string>;

TEST(Scale, ALogarithmicOneHasEqualSteps) {
  const Scale scale(range(1, 64), true, 0, 60);
  EXPECT_DOUBLE_EQ(scale.at(1), 0);
  EXPECT_DOUBLE_EQ(scale.at(8), 30);
  EXPECT_DOUBLE_EQ(scale.at(64), 60);
  const Scale percent(range(0, 100), false, 200, 100);
  EXPECT_DOUBLE_EQ(percent.at(25), 175);
  EXPECT_DOUBLE_EQ(Scale(range(5, 5), true, 0, 60).at(5), 30);
}

TEST(Scale, TicksOfRatesHoldAllValues) {
  AxisRange r = range(0.6, 23);
  EXPECT_EQ(labels(decadeTicks(r, 10)), (Labels{"0.5", "1", "2", "5", "10", "20", "50"}));
  EXPECT_DOUBLE_EQ(r.low, 0.5);
  EXPECT_DOUBLE_EQ(r.high, 50);
  r = range(10, 10);
  EXPECT_EQ(labels(decadeTicks(r, 10)), (Labels{"10", "20"}));
  r = range(0.001, 5e6);
  EXPECT_EQ(labels(decadeTicks(r, 10)).front(), "0.001");
  EXPECT_EQ(labels(decadeTicks(r, 10)).back(), "10M");
  EXPECT_GE(r.high, 5e6);
}

TEST(Scale, LongNumbersAreShortenedAsPeopleDo) {
  AxisRange r = range(3000, 90'000);
  EXPECT_EQ(labels(decadeTicks(r, 10)), (Labels{"2k", "5k", "10k", "20k", "50k", "100k"}));
}

TEST(Scale, NoRangeGivesTooManyTicks) {
  for (const double low : {1e-300, 1e-5, 1.0, 7.0, 1e300})
    for (const double factor : {1.0, 1.5, 30.0, 1e4, 1e200}) {
      if (low * factor > 1e300) continue;
      AxisRange r = range(low, low * factor);
      const auto ticks = decadeTicks(r, 10);
      EXPECT_LE(ticks.size(), 24U) << low << " " << factor;
      EXPECT_GE(ticks.size(), 2U) << low << " " << factor;
      EXPECT_LE(r.low, low);
      EXPECT_GE(r.high, low * factor);
    }
}

TEST(Scale, TicksOfBlockSizes) {
  const std::vector<double> binary{4096, 8192, 16384, 32768, 65536};
  AxisRange r = range(4096, 65536);
  EXPECT_EQ(labels(sizeTicks(r, binary, 12)),
            (Labels{"4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB"}));
  EXPECT_EQ(labels(sizeTicks(r, binary, 3)), (Labels{"4 KiB", "16 KiB", "64 KiB"}));
  r = range(4e3, 64e6);
  EXPECT_EQ(labels(sizeTicks(r, {4e3, 64e3, 1e6, 16e6, 64e6}, 12)),
            (Labels{"4 KB", "64 KB", "1 MB", "16 MB", "64 MB"}));
  r = range(5000, 7001);
  EXPECT_EQ(labels(sizeTicks(r, {5000, 5001, 7001}, 12)), (Labels{"5 KB", "7001 B"}));
  r = range(1000, 1000);
  EXPECT_EQ(labels(sizeTicks(r, {1000}, 12)), (Labels{"1 KB"}));
  EXPECT_LT(r.low, r.high);
}

TEST(Scale, TicksOfPercentages) {
  AxisRange r = range(71, 100);
  EXPECT_EQ(labels(percentTicks(r)), (Labels{"0 %", "20 %", "40 %", "60 %", "80 %", "100 %"}));
  r = range(71, 5000);
  EXPECT_LE(percentTicks(r).size(), 8U);
  EXPECT_GE(r.high, 5000);
}

TEST(Scale, ChangesHaveZeroAndRoundSteps) {
  const auto labels = [](double low, double high) {
    AxisRange range;
    range.add(low);
    range.add(high);
    std::string out;
    for (const Tick& t : changeTicks(range, 10)) out += t.label + ";";
    return out;
  };
  EXPECT_EQ(labels(-4, 18), "-5 %;0 %;+5 %;+10 %;+15 %;+20 %;");
  EXPECT_EQ(labels(90, 110), "0 %;+20 %;+40 %;+60 %;+80 %;+100 %;+120 %;");
  EXPECT_EQ(labels(-0.3, -0.2), "-0.4 %;-0.2 %;0 %;");
  EXPECT_EQ(labels(0, 0), "0 %;+0.2 %;");
}

}  // namespace
}  // namespace viaduct::measure
