// The built command line on a host of a test. Threads: the test's.
#pragma once

#include <string>

#include "cluster/hosts.h"
#include "process/process.h"

namespace viaduct::testing {

class Command {
 public:
  // Both of its outputs are one.
  Command(const Host& host, const std::string& arguments, const std::string& environment = "")
      : process_(
            {"sh", "-c",
             "exec env " + environment + " \"" + VIADUCT_PROGRAM + "\" " + arguments + " 2>&1"},
            host.pid()) {}

  // False when no line starts like this.
  bool readUntil(const std::string& front) {
    while (const auto line = process_.answer(std::chrono::seconds(30))) {
      text_ += *line + "\n";
      if (line->starts_with(front)) return true;
    }
    return false;
  }
  // Its exit status.
  int finish() {
    while (const auto line = process_.answer(std::chrono::seconds(60))) text_ += *line + "\n";
    return process_.wait(std::chrono::seconds(10));
  }
  const std::string& text() const { return text_; }

 private:
  Process process_;
  std::string text_;
};

}  // namespace viaduct::testing
