// How two handfuls of positive figures compare, without assuming how they are spread: by the ranks
// of Wilcoxon, Mann and Whitney. An odd value or two does not move the answer. Threads: pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace viaduct::measure {

// A smaller effect gets no name, however sure it is: 0.01 is 1 %.
inline constexpr double kLeastEffect = 0.01;

struct Interval {
  double low = 0, high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

struct RatioEstimate {
  double ratio = 1;  // of the median of b to the median of a
  // The 95 % interval of it: those ratios for which the rank-sum test sees no difference, widened
  // where the ratio is not among them. Nothing when there are too few figures for one: 4 and 4, or
  // 3 and 5, are the fewest.
  std::optional<Interval> interval = {};
  double effect = 0;      // Cliff's delta: -1 when all of b are below all of a, 1 when above
  std::size_t ahead = 0;  // in how many of the pairs b is above a
  std::size_t pairs = 0;
};

// Figures that are not above 0 are left out; nothing when none is left on a side.
std::optional<RatioEstimate> ratioOf(std::vector<double> a, std::vector<double> b);

}  // namespace viaduct::measure
