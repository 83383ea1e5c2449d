// Reads the output of nixlbench from the logs of pods. A log may have prefixes, colours, unrelated
// lines and several runs, and may be truncated. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

// True if the text contains the head of a nixlbench table.
bool isNixlbenchLog(std::string_view text);

// Returns one report for each table that has rows. nixlbench's "Avg Lat." is the inverse of its
// rate and no latency, so rows get no latency. Rows keep prep, post and tx times, and their path is
// unproven. `name` names the file in errors.
Result<std::vector<Report>> reportsFromNixlbenchLog(std::string_view text, const std::string& name);

}  // namespace viaduct::measure
