// The subcommands of `viaduct` and their common parts. Threads: the main one.
#pragma once

#include <viaduct/settings.h>

#include "measure/report/compare.h"

namespace viaduct::app {

// The exit codes of most subcommands; docs/bench.md lists them.
enum Exit : int {
  kExitOk = 0,
  kExitFailed = 1,  // a measurement failed, or data arrived wrong
  kExitUsage = 2,
  kExitWorkerDied = 3,
  kExitUnsure = 4,  // a comparison with too few runs, or whose runs did not take turns
  kExitInterrupted = 130,
};

// Returns the exit code of a comparison. Says on stderr if the runs allow no answer.
int endOf(const measure::Comparison& found, const measure::CompareOptions& options);

// Returns the agents' settings from the environment, for a command that measures. Populating memory
// during a row would slow it, so it is off unless VIADUCT_POPULATE is set.
Result<Settings> measuringSettings();

}  // namespace viaduct::app
