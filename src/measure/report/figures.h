// Makes the charts over block sizes and the tables below them. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/chart.h"
#include "measure/report/html.h"
#include "measure/report/series.h"

namespace viaduct::measure {

// A chart and its table. The chart is empty if no row has its figures.
struct Figure {
  Chart chart = {};
  HtmlTable table = {};
};

Figure bandwidthFigure(const std::vector<Series>& series);
Figure latencyFigure(const std::vector<Series>& series);
Figure cpuFigure(const std::vector<Series>& series);

// Returns a conspicuous mark such as "INVALID", or an empty text for a valid row.
std::string verdictMark(const Row& row);

}  // namespace viaduct::measure
