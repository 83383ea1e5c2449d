// What can be asked of `viaduct suite`: flags of its own, and those of `viaduct bench` that its
// runs are given. Threads: plain values and pure functions.
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

// A test that the command line adds: a name, and what it sets.
struct AddedTest {
  std::string name = {};
  std::vector<measure::Option> settings = {};
};

struct SuiteOptions {
  std::string backend = {};  // empty: what the environment says, or tcp
  std::vector<std::string> rails = {};
  std::vector<std::string> tests = {};  // empty: all
  std::vector<AddedTest> also = {};
  std::vector<std::uint64_t> sizes = {};  // empty: each test's own
  std::uint64_t block = 0;                // that transfers are cut into; 0: they are one block
  std::uint32_t rounds = 5;
  std::chrono::nanoseconds duration = std::chrono::milliseconds(200);  // of a row in a round
  std::string json = {};
  bool fresh = false;
  double least_effect = measure::kLeastEffect;
  bool as_json = false;  // on stdout
  bool help = false;
  GivenFlags given = {};
  std::vector<std::string> bench = {};  // flags that are handed on, as words
};

// With problems: as far as they can be read.
struct SuiteOptionsOrProblems {
  SuiteOptions options = {};
  std::vector<Error> problems = {};
};
SuiteOptionsOrProblems readSuiteOptions(std::span<const std::string> words);
CommandPage suitePage();

}  // namespace viaduct::app
