// A suite measures tests that differ in the agents' settings. Every test has one turn in each
// round, and the first test is the baseline. docs/suite.md explains its use. Threads: plain values
// and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/result/rank_sum.h"
#include "measure/result/report.h"

namespace viaduct::measure {

inline constexpr std::uint32_t kFewestRounds = 4;  // fewer give no 95 % interval

struct SuiteTest {
  std::string name = {};
  std::vector<Option> settings = {};      // VIADUCT_* variables in addition to the environment
  std::vector<std::uint64_t> sizes = {};  // of transfers, in bytes
  std::string expected = {};  // the effect that people expect; it does not influence the answer
  std::string absent = {};    // why this machine cannot measure it; empty: it is measured
  // How the path shows that the test has an effect. "rails": the number of rails differs from the
  // baseline's. Empty: the path is not examined.
  std::string shows = {};
  friend bool operator==(const SuiteTest&, const SuiteTest&) = default;
};

// One test's turn in one round: a separate run with a row for each of the test's sizes.
struct SuiteRun {
  std::uint32_t round = 0;  // from 0
  std::size_t test = 0;
  std::vector<Row> rows = {};
  friend bool operator==(const SuiteRun&, const SuiteRun&) = default;
};

struct Suite {
  std::string version = {};              // viaduct's version
  std::string started = {};              // UTC, ISO 8601
  std::string end = "complete";          // or the reason of an early end
  std::string command = {};              // the command that began the suite, without secrets
  Environment environment = {};          // known after the first run
  std::vector<Option> settings = {};     // the requested options, the same for all tests
  std::vector<Option> agent = {};        // the agents' settings without those of the tests
  std::vector<SuiteTest> tests = {};     // the first is the baseline
  std::uint32_t rounds = kFewestRounds;  // requested rounds
  std::uint32_t rounds_done = 0;
  double least_effect = kLeastEffect;  // answers name no smaller effect
  std::vector<SuiteRun> runs = {};     // the runs of complete rounds
  friend bool operator==(const Suite&, const Suite&) = default;
};

// Returns the numbers of the tests that are measured.
std::vector<std::size_t> measuredTests(const Suite& suite);

// The bytes of one transfer of a row: its block size times its batch.
std::uint64_t sizeOf(const Row& row);

// Returns, as text, the differences because of which `wanted` cannot continue the rounds of `kept`.
// A larger number of rounds is no such difference.
std::vector<std::string> differencesOf(const Suite& kept, const Suite& wanted);

// Returns the content of a suite's file. It also has the answers, for other programs, but
// suiteFromJson() ignores them.
std::string toJson(const Suite& suite);
// Parses a suite's file. `name` names the file in errors.
Result<Suite> suiteFromJson(std::string_view text, const std::string& name);
// True for the JSON of a suite of any version.
bool isSuiteJson(std::string_view text);

}  // namespace viaduct::measure
