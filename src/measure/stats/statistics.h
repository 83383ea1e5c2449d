// What a handful of repeats says. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace viaduct::measure {

// The middle value; 0 of nothing.
double median(std::vector<double> values);
// The median distance from the median, as a part of it: 0.02 says "about 2 % up or down".
double spread(const std::vector<double>& values);
// The smallest part of transfers whose skipping `checks` show in 999 rows of 1,000.
double smallestCaught(std::uint64_t checks);

}  // namespace viaduct::measure
