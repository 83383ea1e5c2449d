// Reads result files, whoever wrote them. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

// A result file of viaduct is one report; output of nixlbench is one for each of its tables. "-" is
// the standard input. The error names the file, and what it is not.
Result<std::vector<Report>> readReports(const std::string& file);

// The same in two steps. `name`: what errors call the file.
std::string nameOfFile(const std::string& file);
Result<std::string> contentOfFile(const std::string& file);
Result<std::vector<Report>> reportsFrom(const std::string& text, const std::string& name);

}  // namespace viaduct::measure
