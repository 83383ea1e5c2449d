// The subcommands of `viaduct`, and what they have in common. Threads: the main one.
#pragma once

#include <viaduct/settings.h>

#include <string>
#include <vector>

#include "measure/compare/compare.h"

namespace CLI {
class App;
}

namespace viaduct::app {

// What the process ends with; docs/bench.md lists them.
enum Exit : int {
  kExitOk = 0,
  kExitFailed = 1,  // something could not be measured, or arrived wrong
  kExitUsage = 2,
  kExitWorkerDied = 3,
  kExitUnsure = 4,  // a comparison whose runs are too few, or did not take turns
  kExitInterrupted = 130,
};

// `words`: behind the subcommand. `as_nixlbench`: called by that name, with its defaults.
int runBench(const std::vector<std::string>& words, bool as_nixlbench);

struct CompareCommand {
  std::vector<std::string> files = {};               // A and B
  std::vector<std::string> before = {}, after = {};  // or several for each
  measure::CompareOptions options = {};
  bool json = false;
};
void declareCompare(CLI::App& app, CompareCommand& command);
int runCompare(const CompareCommand& command);
// The exit code of a comparison; says on standard error why it is not 0.
int endOf(const measure::Comparison& found, const measure::CompareOptions& options);

struct ReportCommand {
  std::vector<std::string> files = {};
  std::string out = {};
  std::string title = {};
};
void declareReport(CLI::App& app, ReportCommand& command);
int runReport(const ReportCommand& command);

// `words`: behind the subcommand.
int runSuite(const std::vector<std::string>& words);

int runSettings(bool markdown);
// The agents' settings, from the environment, for a command that measures. Populating memory beside
// a row would take the row's time, so it is off unless VIADUCT_POPULATE is set.
Result<Settings> measuringSettings();

}  // namespace viaduct::app
