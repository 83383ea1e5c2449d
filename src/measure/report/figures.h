// The charts over block sizes and the tables below them. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/chart.h"
#include "measure/report/html.h"
#include "measure/report/series.h"

namespace viaduct::measure {

// A chart and its figures; nothing is drawn of what no row has.
struct Figure {
  Chart chart = {};
  HtmlTable table = {};
};

Figure bandwidthFigure(const std::vector<Series>& series);
Figure latencyFigure(const std::vector<Series>& series);
Figure cpuFigure(const std::vector<Series>& series);

// "INVALID" and the like, to be seen; nothing when the row is good.
std::string verdictMark(const Row& row);

}  // namespace viaduct::measure
