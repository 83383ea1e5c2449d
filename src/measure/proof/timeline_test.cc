#include "measure/proof/timeline.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kGb = 1'000'000'000;

RoundShare share(std::uint64_t left, std::uint32_t stream, std::uint64_t start,
                 std::vector<LaneTimes::Part> parts) {
  return {.left_ns = left,
          .streams = {{.stream = stream, .start_ns = start, .parts = std::move(parts)}}};
}

std::vector<double> ratesOf(const std::vector<Placed>& streams, std::size_t windows) {
  std::vector<double> rates;
  for (const LaneTimes::Part& part : partsOf(streams, windows))
    rates.push_back(TimedBytes{part.bytes, part.seconds}.rate());
  return rates;
}

// Two streams move 1 GB in one second each, one after the other. Together that is 1 GB/s, not 2.
TEST(Timeline, StreamsThatDoNotOverlapAreNotAddedUp) {
  const RoundShare shares[] = {share(5 * kSecond, 0, 5 * kSecond, {{kGb, 1.0}}),
                               share(6 * kSecond, 1, 6 * kSecond, {{kGb, 1.0}})};
  const std::string hosts[] = {"a", "a"};
  const auto streams = placed(shares, hosts);
  EXPECT_DOUBLE_EQ(wallOf(streams).rate(), 1);
  for (const double rate : ratesOf(streams, 4)) EXPECT_NEAR(rate, 1, 1e-9);
}

TEST(Timeline, StreamsThatOverlapAreAddedUp) {
  const RoundShare shares[] = {share(5 * kSecond, 0, 5 * kSecond, {{kGb, 1.0}}),
                               share(5 * kSecond, 1, 5 * kSecond, {{3 * kGb, 1.0}})};
  const std::string hosts[] = {"a", "a"};
  EXPECT_DOUBLE_EQ(wallOf(placed(shares, hosts)).rate(), 4);
}

TEST(Timeline, TheSlowestStreamEndsTheWallTime) {
  const RoundShare shares[] = {share(kSecond, 0, kSecond, {{kGb, 1.0}}),
                               share(kSecond, 1, kSecond, {{kGb, 2.0}})};
  const std::string hosts[] = {"a", "a"};
  const auto streams = placed(shares, hosts);
  EXPECT_DOUBLE_EQ(wallOf(streams).rate(), 1);
  const auto rates = ratesOf(streams, 2);
  EXPECT_DOUBLE_EQ(rates[0], 1.5);
  EXPECT_DOUBLE_EQ(rates[1], 0.5);
}

// Clocks of two hosts are unrelated. Both hosts only know when the barrier opened.
TEST(Timeline, HostsAreAlignedAtTheBarrier) {
  const RoundShare shares[] = {share(5 * kSecond, 0, 5 * kSecond, {{kGb, 1.0}}),
                               share(900 * kSecond, 1, 900 * kSecond + kSecond / 2, {{kGb, 1.0}})};
  const std::string hosts[] = {"a", "b"};
  EXPECT_NEAR(wallOf(placed(shares, hosts)).seconds, 1.5, 1e-9);
}

TEST(Timeline, ClocksOfTwoTimeNamespacesAreAlignedAtTheBarrier) {
  RoundShare shares[] = {share(5 * kSecond, 0, 5 * kSecond, {{kGb, 1.0}}),
                         share(900 * kSecond, 1, 900 * kSecond, {{kGb, 1.0}})};
  shares[0].entered_ns = 4 * kSecond;
  shares[1].entered_ns = 899 * kSecond;
  const std::string hosts[] = {"a", "a"};
  EXPECT_NEAR(wallOf(placed(shares, hosts)).seconds, 1, 1e-9);
}

TEST(Timeline, OneStreamHasItsOwnParts) {
  const RoundShare shares[] = {share(0, 0, 0, {{kGb, 1.0}, {kGb, 0.5}})};
  const std::string hosts[] = {"a"};
  EXPECT_EQ(ratesOf(placed(shares, hosts), 5), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace viaduct::measure
