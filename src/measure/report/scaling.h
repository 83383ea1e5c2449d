// Shows how the rate grows with the number of members. Threads: pure functions.
#pragma once

#include <vector>

#include "measure/report/figures.h"
#include "measure/report/series.h"

namespace viaduct::measure {

// Returns a chart of the efficiency: the rate per member, as a percentage of the rate per member in
// the run with the fewest members. Empty if all runs have the same number of members.
Figure scalingFigure(const std::vector<Series>& series);

}  // namespace viaduct::measure
