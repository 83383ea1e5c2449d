// The file that --json or --junit names. Threads: the main one.
#pragma once

#include <viaduct/result.h>

#include <optional>
#include <string>

#include "base/replaced_file.h"
#include "measure/result/report.h"

namespace viaduct::app {

class ResultsFile {
 public:
  // Checks before the run that the file can be written, so that no measurement is wasted. An empty
  // name means no file.
  static Result<ResultsFile> open(const std::string& name, const char* flag = "--json");
  Status write(const measure::Report& report) { return write(toJson(report)); }
  Status write(const std::string& text);

 private:
  std::optional<base::ReplacedFile> file_;
};

}  // namespace viaduct::app
