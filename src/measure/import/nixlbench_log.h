// Reads what nixlbench printed, as it stands in the logs of pods: with prefixes and colours, other
// lines in between, several runs in one file, cut off. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

// The head of a nixlbench table is somewhere in it.
bool isNixlbenchLog(std::string_view text);

// One report for each table that has rows. What nixlbench calls "Avg Lat." is the inverse of its
// rate and no latency: rows have none. Prep, post and tx are taken; the path is unproven.
// `name`: of the file, for errors.
Result<std::vector<Report>> reportsFromNixlbenchLog(std::string_view text, const std::string& name);

}  // namespace viaduct::measure
