// Compares two small samples of positive figures without assuming a distribution, by the rank-sum
// test of Wilcoxon, Mann and Whitney. A few outliers do not change the result. Threads: pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace viaduct::measure {

// By default a smaller difference is not reported, even if it is certain. 0.01 is 1 %.
inline constexpr double kLeastEffect = 0.01;

struct Interval {
  double low = 0, high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

struct RatioEstimate {
  double ratio = 1;  // the median of b divided by the median of a
  // The 95 % interval of the ratio: all ratios for which the rank-sum test sees no difference,
  // widened to include `ratio`. Nothing if there are too few figures: at least 4 and 4, or 3
  // and 5, are needed.
  std::optional<Interval> interval = {};
  double effect = 0;      // Cliff's delta: -1 if all of b are below all of a, 1 if above
  std::size_t ahead = 0;  // number of pairs in which b is above a
  std::size_t pairs = 0;
};

// Leaves out figures that are not above 0. Returns nothing if a side has no figures left.
std::optional<RatioEstimate> ratioOf(std::vector<double> a, std::vector<double> b);

// Returns how many figures each side needs to show, in nine of ten cases, a ratio that lies
// `distance` beyond the least effect. Assumes that further figures are as noisy as these. Leaves
// out the figures that ratioOf() leaves out; each side must have two figures left.
double figuresNeeded(std::vector<double> a, std::vector<double> b, double distance);

}  // namespace viaduct::measure
