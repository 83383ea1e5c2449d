#include "measure/result/rank_sum.h"

#include <algorithm>
#include <cmath>

#include "measure/result/statistics.h"

namespace viaduct::measure {
namespace {

constexpr double kTail = 0.025;       // at each end of a 95 % interval
constexpr std::size_t kExact = 40;    // figures a side, up to which the distribution is exact
constexpr std::size_t kMost = 1'000;  // most figures a side that are used, to limit the pairs
constexpr double kNormalTail = 1.959964;

// Returns the probability of each rank sum U over all orders of n and m figures.
std::vector<double> distribution(std::size_t n, std::size_t m) {
  // f(n, m, u) = n/(n+m) f(n-1, m, u-m) + m/(n+m) f(n, m-1, u), row by row over n.
  std::vector<std::vector<double>> row(m + 1, std::vector<double>{1});
  for (std::size_t i = 1; i <= n; ++i) {
    std::vector<std::vector<double>> next(m + 1, std::vector<double>{1});
    for (std::size_t j = 1; j <= m; ++j) {
      std::vector<double>& out = next[j];
      out.assign(i * j + 1, 0);
      const double from_a = static_cast<double>(i) / static_cast<double>(i + j);
      for (std::size_t u = 0; u < row[j].size(); ++u) out[u + j] += from_a * row[j][u];
      for (std::size_t u = 0; u < next[j - 1].size(); ++u) out[u] += (1 - from_a) * next[j - 1][u];
    }
    row = std::move(next);
  }
  return row[m];
}

// Returns how many of the sorted ratios lie outside of the 95 % interval at each end. Nothing if
// the range of all ratios is still too narrow for a 95 % interval.
std::optional<std::size_t> outside(std::size_t n, std::size_t m) {
  if (n > kExact || m > kExact) {
    const auto pairs = static_cast<double>(n * m);
    const double deviation = std::sqrt(pairs * static_cast<double>(n + m + 1) / 12);
    return static_cast<std::size_t>(std::max(0.0, pairs / 2 - kNormalTail * deviation));
  }
  double below = 0;
  std::optional<std::size_t> out;
  const std::vector<double> chances = distribution(n, m);
  for (std::size_t u = 0; u < chances.size(); ++u) {
    below += chances[u];
    if (below > kTail) break;
    out = u;
  }
  return out;
}

void prepare(std::vector<double>& values) {
  std::erase_if(values, [](double v) { return !(v > 0) || !std::isfinite(v); });
  if (values.size() > kMost) values.resize(kMost);
}

// Returns the sum of the squared distances of the logarithms from their mean.
double squaresOf(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += std::log(value) / static_cast<double>(values.size());
  for (const double value : values) squares += (std::log(value) - mean) * (std::log(value) - mean);
  return squares;
}

}  // namespace

std::optional<RatioEstimate> ratioOf(std::vector<double> a, std::vector<double> b) {
  prepare(a);
  prepare(b);
  if (a.empty() || b.empty()) return std::nullopt;
  RatioEstimate out{.ratio = median(b) / median(a), .pairs = a.size() * b.size()};
  std::vector<double> ratios;
  ratios.reserve(out.pairs);
  std::size_t behind = 0;
  for (const double x : a)
    for (const double y : b) {
      ratios.push_back(y / x);
      out.ahead += y > x ? 1 : 0;
      behind += y < x ? 1 : 0;
    }
  std::sort(ratios.begin(), ratios.end());
  out.effect = (static_cast<double>(out.ahead) - static_cast<double>(behind)) /
               static_cast<double>(out.pairs);
  if (const auto skip = outside(a.size(), b.size()))
    out.interval = Interval{std::min(ratios[*skip], out.ratio),
                            std::max(ratios[ratios.size() - 1 - *skip], out.ratio)};
  return out;
}

double figuresNeeded(std::vector<double> a, std::vector<double> b, double distance) {
  prepare(a);
  prepare(b);
  constexpr double kNineOfTen = 1.281552;  // 90 % quantile of the normal distribution
  // With normal noise, the rank-sum test needs pi/3 times as many figures as a t-test.
  constexpr double kRankSum = 1.047198;
  const double variance =
      (squaresOf(a) + squaresOf(b)) / static_cast<double>(a.size() + b.size() - 2);
  const double steps = kNormalTail + kNineOfTen;
  return 2 * kRankSum * steps * steps * variance / (distance * distance);
}

}  // namespace viaduct::measure
