// Runs the built program on a host of a test. Threads: the test's.
#pragma once

#include <functional>
#include <string>

#include "cluster/hosts.h"
#include "process/process.h"
#include "support/paths.h"

namespace viaduct::testing {

class Command {
 public:
  // Reads stdout and stderr as one.
  Command(const Host& host, const std::string& arguments, const std::string& environment = "")
      : process_({"sh", "-c",
                  "exec env " + environment + " \"" + kProgram + "\" " + arguments + " 2>&1"},
                 host.pid()) {}

  // False: no line starts with `front`.
  bool readUntil(const std::string& front) {
    return readUntil([&](const std::string& line) { return line.starts_with(front); });
  }
  // False: no line contains `part`.
  bool readUntilHas(const std::string& part) {
    return readUntil([&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  // Returns the exit code.
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
