// Reads what the raw tools of the field print: perftest (ib_write_bw and its kin), ucx_perftest,
// fabtests (fi_rma_bw and its kin) and nccl-tests, as it stands in the logs of pods: with prefixes
// and colours, other lines in between, several runs in one file. And the JSON of iperf3.
// Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

// The head of a table of one of the tools is somewhere in it.
bool isBaselineLog(std::string_view text);

// One report for each table that has rows. `name`: of the file, for errors.
Result<std::vector<Report>> reportsFromBaselineLog(std::string_view text, const std::string& name);

// JSON that `iperf3 -J` wrote.
bool isIperf3(std::string_view text);
Result<Report> reportFromIperf3(std::string_view text, const std::string& name);

}  // namespace viaduct::measure
