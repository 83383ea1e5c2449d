// The flags of `viaduct suite`: its own, and the flags of `viaduct bench` that its runs get.
// Threads: plain values and pure functions.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/stats/rank_sum.h"
#include "viaduct/bench_options.h"

namespace viaduct::app {

// A test that the command line adds: its name and its settings.
struct AddedTest {
  std::string name = {};
  std::vector<measure::Option> settings = {};
};

struct SuiteOptions {
  std::string backend = {};  // empty: the environment names it, or tcp
  std::vector<std::string> rails = {};
  std::vector<std::string> tests = {};  // empty: all tests
  std::vector<AddedTest> also = {};
  std::vector<std::uint64_t> sizes = {};  // empty: the sizes of each test
  std::uint64_t block = 0;                // the block size of each transfer; 0: one block
  std::uint32_t rounds = 5;
  std::chrono::nanoseconds duration = std::chrono::milliseconds(200);  // of a row in a round
  std::string json = {};
  bool fresh = false;
  double least_effect = measure::kLeastEffect;
  bool as_json = false;  // print JSON to stdout
  bool help = false;
  GivenFlags given = {};
  std::vector<std::string> bench = {};  // flags for the runs of `viaduct bench`, as words
};

// The options. If there are problems, they hold the flags that could be read.
struct SuiteOptionsOrProblems {
  SuiteOptions options = {};
  std::vector<Error> problems = {};
};
SuiteOptionsOrProblems readSuiteOptions(std::span<const std::string> words);
CommandPage suitePage();

}  // namespace viaduct::app
