// The choice of transfers to time, with a clock that the test sets.
#include "agent/basis/timing.h"

#include <gtest/gtest.h>

#include <numeric>

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

struct Timings {
  Latencies latencies;
  int timed = 0;
  std::uint64_t counted() const {
    return std::accumulate(latencies.counts.begin(), latencies.counts.end(), std::uint64_t{0});
  }
};

// Runs transfers one after the other; every `step`th takes `longer`.
Timings run(int transfers, Duration each, int step = 1, Duration longer = 0ns) {
  Timing timing;
  Clock::time_point now(1h);
  Timings out;
  for (int i = 0; i < transfers; ++i) {
    Timing::Timed timed;
    if (timing.isDue()) timed = timing.begin(now);
    now += each + (i % step == 0 ? longer : 0ns);
    if (timed.times == 0) continue;
    ++out.timed;
    timing.end(timed, now);
  }
  out.latencies = timing.latencies();
  return out;
}

TEST(Timing, TimesEachTransferThatComesSlowly) {
  const Timings slow = run(1000, 250us);
  EXPECT_EQ(slow.timed, 1000);
  EXPECT_EQ(slow.counted(), 1000U);
  EXPECT_EQ(slow.latencies.sum, 250ms);
}

TEST(Timing, TimesAFewOfManyFastTransfersAndLetsThemCountForAll) {
  const Timings fast = run(1'000'000, 150ns);
  EXPECT_LT(fast.timed, 20'000);
  EXPECT_NEAR(static_cast<double>(fast.counted()), 1e6, 5e4);
  EXPECT_NEAR(static_cast<double>(fast.latencies.sum.count()), 150e6, 7.5e6);
}

// A program posts the transfers of 64 layers in turn. The timed sample includes every layer.
TEST(Timing, MissesNoTransferOfAFixedOrder) {
  const Timings layers = run(1'000'000, 150ns, 64, 1ms - 150ns);
  const std::uint64_t slow = layers.latencies.counts[static_cast<std::size_t>(
      std::lower_bound(Latencies::kBounds.begin(), Latencies::kBounds.end(), 1ms) -
      Latencies::kBounds.begin())];
  EXPECT_NEAR(static_cast<double>(slow), 1e6 / 64, 1e6 / 64 * 0.2);
}

TEST(Latencies, HaveBoundsThatGrowByFactorsOfTwoAndAHalfAtMost) {
  const auto& bounds = Latencies::kBounds;
  EXPECT_EQ(bounds.front(), 200ns);
  EXPECT_EQ(bounds[2], 1us);
  EXPECT_EQ(bounds.back(), 50s);
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    EXPECT_GT(bounds[i], bounds[i - 1]);
    EXPECT_LE(bounds[i] * 2, bounds[i - 1] * 5);
  }
}

TEST(Latencies, CountATimeInTheFirstBucketThatHoldsIt) {
  Latencies latencies;
  latencies.add(200ns, 1);
  latencies.add(201ns, 2);
  latencies.add(1min, 3);
  EXPECT_EQ(latencies.counts.front(), 1U);
  EXPECT_EQ(latencies.counts[1], 2U);
  EXPECT_EQ(latencies.counts.back(), 3U);
}

}  // namespace
}  // namespace viaduct::agent
