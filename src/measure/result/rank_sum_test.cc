#include "measure/result/rank_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "measure/result/noise_testing.h"

namespace viaduct::measure {
namespace {

std::vector<double> around(double middle, double noise, std::size_t count, base::Random& random) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;  // the sum of twelve uniform values is nearly normal
    for (int k = 0; k < 12; ++k) sum += static_cast<double>(random.below(1'000'000)) * 1e-6;
    out.push_back(middle * std::exp(noise * (sum - 6)));
  }
  return out;
}

TEST(RankSum, AClearDifferenceHasANarrowInterval) {
  const auto found = ratioOf({10, 11, 10.5, 10.2, 10.8}, {20, 21, 22, 20.5, 21.5});
  ASSERT_TRUE(found && found->interval);
  EXPECT_NEAR(found->ratio, 2, 0.05);
  EXPECT_EQ(found->effect, 1);
  EXPECT_EQ(found->ahead, 25U);
  EXPECT_EQ(found->pairs, 25U);
  EXPECT_GT(found->interval->low, 1.8);
  EXPECT_LT(found->interval->high, 2.2);
  EXPECT_LE(found->interval->low, found->ratio);
  EXPECT_GE(found->interval->high, found->ratio);
}

TEST(RankSum, EqualSamplesShowNoDifference) {
  const std::vector<double> same{3, 3.1, 2.9, 3.05, 2.95};
  const auto found = ratioOf(same, same);
  ASSERT_TRUE(found && found->interval);
  EXPECT_DOUBLE_EQ(found->ratio, 1);
  EXPECT_EQ(found->effect, 0);
  EXPECT_LT(found->interval->low, 1);
  EXPECT_GT(found->interval->high, 1);
}

// Tables of the Mann-Whitney test say: U < 3 has a probability below 2.5 % for 5 and 5 figures, and
// U < 1 for 4 and 4. For 3 and 3 figures, no U is that improbable.
TEST(RankSum, TheFewestFiguresForAnInterval) {
  const std::vector<double> one{1, 2, 4, 8, 16};
  const auto ofSizes = [&](std::size_t n, std::size_t m) {
    return ratioOf({one.begin(), one.begin() + static_cast<long>(n)},
                   {one.begin(), one.begin() + static_cast<long>(m)})
        ->interval;
  };
  EXPECT_FALSE(ofSizes(3, 3));
  EXPECT_FALSE(ofSizes(1, 5));
  EXPECT_FALSE(ofSizes(3, 4));
  EXPECT_EQ(ofSizes(4, 4), (Interval{1.0 / 8, 8}));
  EXPECT_TRUE(ofSizes(3, 5));
  // The interval ends at the third of the 25 sorted ratios from each end: 1/16, 1/8, 1/8, ...
  EXPECT_EQ(ofSizes(5, 5), (Interval{1.0 / 8, 8}));
}

TEST(RankSum, OneOutlierDoesNotDecide) {
  const auto found = ratioOf({10, 10.1, 9.9, 10.05, 9.95}, {10, 10.1, 9.9, 10.05, 0.1});
  ASSERT_TRUE(found && found->interval);
  EXPECT_NEAR(found->ratio, 1, 0.02);
  EXPECT_GT(found->interval->high, 1);
}

TEST(RankSum, InvalidFiguresAreLeftOut) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(ratioOf({}, {1}));
  EXPECT_FALSE(ratioOf({0, -1, nan}, {1}));
  const auto found = ratioOf({2, nan, 0}, {3, 3});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->ratio, 1.5);
  EXPECT_EQ(found->pairs, 2U);
  EXPECT_FALSE(found->interval);
}

TEST(RankSum, TheRatioIsThatOfTheMediansAndInsideOfTheInterval) {
  const auto found = ratioOf({10, 11, 15, 16}, {9, 9.5, 20, 21});
  ASSERT_TRUE(found && found->interval);
  EXPECT_DOUBLE_EQ(found->ratio, 14.75 / 13);
  base::Random random(3);
  for (int round = 0; round < 200; ++round) {
    // The figures are skewed, so the median of the ratios differs from the ratio of the medians.
    std::vector<double> a, b;
    for (int i = 0; i < 41; ++i) {
      a.push_back(i < 20 ? 1 + 0.01 * static_cast<double>(random.below(100)) : 10);
      b.push_back(i < 21 ? 1 + 0.01 * static_cast<double>(random.below(100)) : 10);
    }
    const auto odd = ratioOf(a, b);
    ASSERT_TRUE(odd && odd->interval);
    EXPECT_LE(odd->interval->low, odd->ratio);
    EXPECT_GE(odd->interval->high, odd->ratio);
  }
}

// A 95 % interval must contain the true ratio in 95 % of cases or more.
TEST(RankSum, TheIntervalContainsTheTrueRatioOftenEnough) {
  base::Random random(7);
  for (const std::size_t size : {4U, 5U, 12U, 60U}) {
    int inside = 0;
    constexpr int kRounds = 2000;
    for (int round = 0; round < kRounds; ++round) {
      const auto found = ratioOf(around(10, 0.1, size, random), around(9, 0.1, size, random));
      inside += found->interval->low <= 0.9 && 0.9 <= found->interval->high ? 1 : 0;
    }
    EXPECT_GE(inside, kRounds * 94 / 100) << size;
  }
}

TEST(RankSum, AsManyFiguresAsNeededShowADifference) {
  base::Random random(11);
  const std::vector<double> noise = evenNoise(400, random);
  const double needed = figuresNeeded({noise.begin(), noise.begin() + 200},
                                      {noise.begin() + 200, noise.end()}, std::log(1.1 / 1.05));
  EXPECT_NEAR(needed, 9.2, 1.5);
  const auto size = static_cast<std::size_t>(std::ceil(needed));
  int seen = 0;
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> a = evenNoise(size, random), b = evenNoise(size, random);
    for (double& one : b) one *= 1.1;
    seen += ratioOf(std::move(a), std::move(b))->interval->low > 1.05 ? 1 : 0;
  }
  EXPECT_NEAR(seen, kRounds * 0.9, kRounds * 0.06);
}

}  // namespace
}  // namespace viaduct::measure
