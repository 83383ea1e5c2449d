// A suite: tests that differ in the agents' settings, measured in rounds, in each of which every
// test has its turn; the first is the baseline of the others. docs/suite.md says what it is for.
// Threads: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/stats/rank_sum.h"

namespace viaduct::measure {

inline constexpr std::uint32_t kFewestRounds = 4;  // below there is no 95 % interval

struct SuiteTest {
  std::string name = {};
  std::vector<Option> settings = {};      // VIADUCT_* variables, on top of the environment's
  std::vector<std::uint64_t> sizes = {};  // of transfers, in bytes
  std::string expected = {};              // what people expect of it; no answer looks at it
  std::string absent = {};                // why it is not measured here; empty: it is
  // By what a row's path shows that the test did anything: "rails" (other ones than the
  // baseline's); empty: nothing does.
  std::string shows = {};
  friend bool operator==(const SuiteTest&, const SuiteTest&) = default;
};

// One test's turn in one round: a run of its own, with a row for each of its sizes.
struct SuiteRun {
  std::uint32_t round = 0;  // from 0
  std::size_t test = 0;
  std::vector<Row> rows = {};
  friend bool operator==(const SuiteRun&, const SuiteRun&) = default;
};

struct Suite {
  std::string version = {};              // of viaduct
  std::string started = {};              // UTC, ISO 8601
  std::string end = "complete";          // or how it ended early
  std::string command = {};              // that began it, without secrets
  Environment environment = {};          // known once a run has been
  std::vector<Option> settings = {};     // what was asked for, the same for all tests
  std::vector<Option> agent = {};        // the agents' settings, the tests' own not among them
  std::vector<SuiteTest> tests = {};     // the first is the baseline
  std::uint32_t rounds = kFewestRounds;  // that were asked for
  std::uint32_t rounds_done = 0;
  double least_effect = kLeastEffect;  // no answer names a smaller one
  std::vector<SuiteRun> runs = {};     // of the rounds that are done
  friend bool operator==(const Suite&, const Suite&) = default;
};

// Numbers of the tests that are measured.
std::vector<std::size_t> measuredTests(const Suite& suite);

// The transfer size of a row.
std::uint64_t sizeOf(const Row& row);

// In what `wanted` differs from what `kept` was measured with, in words: then its rounds cannot go
// on. More rounds may be asked for.
std::vector<std::string> differencesOf(const Suite& kept, const Suite& wanted);

// The whole file. Answers stand in it for other readers; here they are made from the runs.
std::string toJson(const Suite& suite);
// `name`: of the file, for errors.
Result<Suite> suiteFromJson(std::string_view text, const std::string& name);
// Whether this is the JSON of a suite, of whatever version.
bool isSuiteJson(std::string_view text);

}  // namespace viaduct::measure
