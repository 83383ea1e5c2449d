// Reads the output of perftest (such as ib_write_bw), ucx_perftest, fabtests (such as fi_rma_bw),
// nccl-tests and iperf3 (JSON). The text may be a pod's log: with prefixes, colours, lines of other
// programs, and several runs in one file. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

// True if the text contains a table's heading of one of these tools, except iperf3.
bool isBaselineLog(std::string_view text);

// Returns one report for each table that has rows. `name` names the file in errors.
Result<std::vector<Report>> reportsFromBaselineLog(std::string_view text, const std::string& name);

// True for the JSON output of `iperf3 -J`.
bool isIperf3(std::string_view text);
Result<Report> reportFromIperf3(std::string_view text, const std::string& name);

}  // namespace viaduct::measure
