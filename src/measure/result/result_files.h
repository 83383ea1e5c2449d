// Reads result files of viaduct and of other tools. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

// Reads a file, or standard input if `file` is "-". A result file of viaduct is one report; a log
// of another tool is one report for each table. An error names the file and the expected formats.
Result<std::vector<Report>> readReports(const std::string& file);

// readReports() in two steps: contentOfFile(), then reportsFrom() with the name from nameOfFile().
std::string nameOfFile(const std::string& file);
Result<std::string> contentOfFile(const std::string& file);
Result<std::vector<Report>> reportsFrom(const std::string& text, const std::string& name);

}  // namespace viaduct::measure
