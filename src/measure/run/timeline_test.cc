#include "measure/run/timeline.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kGb = 1'000'000'000;

RowShare share(std::uint64_t left, std::uint32_t stream, std::uint64_t start,
               std::vector<LaneTimes::Part> parts) {
  RowShare out;
  out.left_ns = {left};
  out.streams.push_back({.stream = stream, .stretches = {{start, std::move(parts)}}});
  return out;
}

// Two that each move 1 GB in a second, but one after the other: together 1 GB/s, not 2.
TEST(Timeline, StreamsThatDoNotOverlapAreNotAddedUp) {
  const RowShare shares[] = {share(5 * kSecond, 0, 5 * kSecond, {{kGb, 1.0}}),
                             share(6 * kSecond, 1, 6 * kSecond, {{kGb, 1.0}})};
  const std::string hosts[] = {"a", "a"};
  const auto streams = placed(shares, hosts, 0);
  EXPECT_DOUBLE_EQ(wallOf(streams).rate(), 1);
  for (const double rate : ratesOf(streams, 4)) EXPECT_NEAR(rate, 1, 1e-9);
}

TEST(Timeline, StreamsThatOverlapAre) {
  const RowShare shares[] = {share(5 * kSecond, 0, 5 * kSecond, {{kGb, 1.0}}),
                             share(5 * kSecond, 1, 5 * kSecond, {{3 * kGb, 1.0}})};
  const std::string hosts[] = {"a", "a"};
  EXPECT_DOUBLE_EQ(wallOf(placed(shares, hosts, 0)).rate(), 4);
}

TEST(Timeline, TheSlowestCountsAndTheWindowsShowWhen) {
  const RowShare shares[] = {share(kSecond, 0, kSecond, {{kGb, 1.0}}),
                             share(kSecond, 1, kSecond, {{kGb, 2.0}})};
  const std::string hosts[] = {"a", "a"};
  const auto streams = placed(shares, hosts, 0);
  EXPECT_DOUBLE_EQ(wallOf(streams).rate(), 1);
  const auto rates = ratesOf(streams, 2);
  EXPECT_DOUBLE_EQ(rates[0], 1.5);
  EXPECT_DOUBLE_EQ(rates[1], 0.5);
}

// Clocks of two hosts have nothing in common: what both know is when the barrier opened.
TEST(Timeline, HostsAreBroughtTogetherAtTheBarrier) {
  const RowShare shares[] = {share(5 * kSecond, 0, 5 * kSecond, {{kGb, 1.0}}),
                             share(900 * kSecond, 1, 900 * kSecond + kSecond / 2, {{kGb, 1.0}})};
  const std::string hosts[] = {"a", "b"};
  EXPECT_NEAR(wallOf(placed(shares, hosts, 0)).seconds, 1.5, 1e-9);
}

TEST(Timeline, OneStreamHasItsOwnParts) {
  const RowShare shares[] = {share(0, 0, 0, {{kGb, 1.0}, {kGb, 0.5}})};
  const std::string hosts[] = {"a"};
  EXPECT_EQ(ratesOf(placed(shares, hosts, 0), 5), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace viaduct::measure
