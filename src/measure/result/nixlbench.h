// Prints rows as nixlbench 1.4.0 does, with equal headers, columns, widths and digits, for programs
// that parse them. Figures that were not measured are "nan". Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/result/row.h"

namespace viaduct::measure {

// Returns "NIXLBench Configuration" and its lines. `flags` have their nixlbench names without
// dashes. A missing flag has nixlbench's default, but no line if it is about a meeting place or
// storage.
std::string nixlbenchBanner(const std::vector<Option>& flags);

// nixlbench prints two more columns for pairwise runs in mode SG with more than two processes.
enum class NixlbenchColumns { kUsual, kManyPairs };
std::string nixlbenchHead(NixlbenchColumns columns);
// Returns an empty text for a row that could not be measured. "Avg Lat." is a thread's total time,
// divided by its number of blocks, as in nixlbench. "Network Util" is relative to the measured
// ceiling, while nixlbench assumes 50 GB/s.
std::string nixlbenchLine(const Row& row, NixlbenchColumns columns);
// Returns a line below the table, which nixlbench itself does not print. The line names the rows'
// path, and says whether it is RDMA and proven. Empty if no row has moved anything.
std::string nixlbenchCarrier(const std::vector<Row>& rows);

}  // namespace viaduct::measure
