// Rows as nixlbench 1.4.0 prints them: the same header, columns, widths and digits, for programs
// that read its text. Figures that were not measured are "nan". Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/result/row.h"

namespace viaduct::measure {

// "NIXLBench Configuration" and its lines. `flags`: by their nixlbench names without dashes; one
// that is not given has nixlbench's default.
std::string nixlbenchBanner(const std::vector<Option>& flags);

// nixlbench has two more columns for pairwise runs in mode SG with more than two processes.
enum class NixlbenchColumns { kUsual, kManyPairs };
std::string nixlbenchHead(NixlbenchColumns columns);
// A row that could not be measured is no line. "Avg Lat." is what it is there: a thread's time for
// all blocks, divided by their number. "Network Util" is of the real ceiling, not of 50 GB/s.
std::string nixlbenchLine(const Row& row, NixlbenchColumns columns);

}  // namespace viaduct::measure
