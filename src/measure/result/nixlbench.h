// Prints rows as nixlbench 1.4.0 does, with equal headers, columns, widths and digits, for programs
// that parse them. Figures that were not measured are "nan". Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/result/row.h"

namespace viaduct::measure {

// Returns "NIXLBench Configuration" and its lines. `flags` have their nixlbench names without
// dashes. A missing flag has nixlbench's default; a flag of a meeting place or of storage has no
// line then.
std::string nixlbenchBanner(const std::vector<Option>& flags);

// nixlbench prints two more columns for pairwise runs in mode SG with more than two processes.
enum class NixlbenchColumns { kUsual, kManyPairs };
std::string nixlbenchHead(NixlbenchColumns columns);
// Returns an empty text for a row that could not be measured. "Avg Lat." is a thread's time for all
// blocks, divided by their number, as in nixlbench. "Network Util" is relative to the real ceiling,
// where nixlbench assumes 50 GB/s.
std::string nixlbenchLine(const Row& row, NixlbenchColumns columns);
// Returns the line under the table, which nixlbench does not have: the path of the rows, whether it
// is RDMA, and whether counters prove it. Empty if no row has moved anything.
std::string nixlbenchCarrier(const std::vector<Row>& rows);

}  // namespace viaduct::measure
