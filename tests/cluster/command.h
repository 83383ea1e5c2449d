// The built command line on a host of a test. Threads: the test's.
#pragma once

#include <functional>
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
    return readUntil([&](const std::string& line) { return line.starts_with(front); });
  }
  // False when no line has this in it.
  bool readUntilHas(const std::string& part) {
    return readUntil([&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  // Its exit status.
  int finish() {
    while (const auto line = process_.answer(std::chrono::seconds(60))) text_ += *line + "\n";
    return process_.wait(std::chrono::seconds(10));
  }
  const std::string& text() const { return text_; }

 private:
  bool readUntil(const std::function<bool(const std::string&)>& wanted) {
    while (const auto line = process_.answer(std::chrono::seconds(30))) {
      text_ += *line + "\n";
      if (wanted(*line)) return true;
    }
    return false;
  }

  Process process_;
  std::string text_;
};

}  // namespace viaduct::testing
