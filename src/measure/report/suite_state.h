// The file that holds a suite's rounds. A later start with equal settings continues after them.
// Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <optional>
#include <string>

#include "base/replaced_file.h"
#include "measure/report/suite.h"

namespace viaduct::measure {

class SuiteFile {
 public:
  // Checks before any measurement that the file can be read and written, without changing it. An
  // empty name means no file. `fresh` ignores the rounds in the file.
  static Result<SuiteFile> open(const std::string& name, bool fresh);

  const std::string& name() const { return name_; }
  const std::optional<Suite>& kept() const { return kept_; }
  Status write(const Suite& suite) const;

 private:
  std::string name_;
  std::optional<base::ReplacedFile> file_;
  std::optional<Suite> kept_;
};

// Returns the suite to measure, with the rounds that the file holds. An error names the
// differences.
Result<Suite> goOn(const SuiteFile& file, Suite wanted);

}  // namespace viaduct::measure
