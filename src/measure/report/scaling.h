// How the rate grows with the number of members. Threads: pure functions.
#pragma once

#include <vector>

#include "measure/report/figures.h"
#include "measure/report/series.h"

namespace viaduct::measure {

// Efficiency: GB/s per member, as a percentage of what it is with the fewest members. Empty when
// all runs have the same number of members.
Figure scalingFigure(const std::vector<Source>& sources);

}  // namespace viaduct::measure
