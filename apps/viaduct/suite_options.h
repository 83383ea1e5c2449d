// The options of `viaduct suite`: its own, and those of `viaduct bench` that its runs get. Threads:
// plain values.
#pragma once

#include <viaduct/settings.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/result/report.h"
#include "viaduct/bench_options.h"

namespace viaduct::app {

// A test that the command line adds: its name and its settings.
struct AddedTest {
  std::string name = {};
  std::vector<measure::Option> settings = {};
};

struct SuiteOptions : BenchOptions {
  std::vector<std::string> tests = {};  // empty: all tests
  std::vector<AddedTest> also = {};
  std::vector<std::uint64_t> sizes = {};  // empty: the sizes of each test
  std::uint64_t block = 0;                // the block size of each transfer; 0: one block
  std::uint32_t rounds = 5;
  bool fresh = false;

  SuiteOptions() { spec.duration = std::chrono::milliseconds(200); }  // of a row in a round
  bool asJson() const { return out.form == OutputForm::kJson; }
};

// Measures, and returns the exit code. Prints `problems` and those of the options instead, if there
// are any.
int runSuite(const SuiteOptions& options, const Settings& settings, std::vector<Error> problems);

}  // namespace viaduct::app
