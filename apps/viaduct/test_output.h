// Tells systems that run tests how the rows ended: the file of --junit, and annotations if GitHub
// runs the command. Threads: the main one.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "measure/report/test_report.h"
#include "viaduct/results_file.h"

namespace viaduct::app {

class TestOutput {
 public:
  // `suite` names the command. An empty file name means no file.
  static Result<TestOutput> open(std::string suite, const std::string& junit);
  // `to`: the stream that has nothing but text for people.
  Status tell(const std::vector<measure::RowTest>& tests, std::FILE* to);

 private:
  TestOutput(std::string suite, ResultsFile file)
      : suite_(std::move(suite)), file_(std::move(file)) {}

  std::string suite_;
  ResultsFile file_;
};

}  // namespace viaduct::app
