// Statistics of a few repeats. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace viaduct::measure {

// Returns the middle value, or 0 for no values.
double median(std::vector<double> values);
// Returns the median, or nothing for no values.
std::optional<double> middle(const std::vector<double>& values);
// Returns the median distance from the median, as a part of the median: 0.02 means about 2 % up or
// down.
double spread(const std::vector<double>& values);
// If at least this part of a row's transfers is skipped, `checks` random checks notice it in 999
// rows of 1,000. Without checks, the part is 1.
double smallestCaught(std::uint64_t checks);

}  // namespace viaduct::measure
