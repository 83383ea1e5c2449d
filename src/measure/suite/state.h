// The file that keeps a suite's rounds: a later start with the same settings goes on behind them.
// Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <optional>
#include <string>

#include "measure/suite/suite.h"

namespace viaduct::measure {

class SuiteFile {
 public:
  // Before anything is measured it is known that the file can be read and written; it is not
  // changed by that. An empty name: none. `fresh`: what a suite has left there does not count.
  static Result<SuiteFile> open(const std::string& name, bool fresh);

  const std::string& name() const { return name_; }
  const std::optional<Suite>& kept() const { return kept_; }
  // As a whole or not at all: another file takes its place.
  Status write(const Suite& suite) const;

 private:
  std::string name_, target_;  // as it was given, and behind links
  std::optional<Suite> kept_;
};

// What is to be measured, behind the rounds that the file has. The error names what differs.
Result<Suite> goOn(const SuiteFile& file, Suite wanted);

}  // namespace viaduct::measure
