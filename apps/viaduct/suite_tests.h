// The optimisations that `viaduct suite` knows, in one table. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <optional>
#include <string>
#include <vector>

#include "measure/report/suite.h"
#include "viaduct/suite_options.h"

namespace viaduct::app {

// Returns the baseline, the requested tests, and all of them combined. A test that cannot be
// measured here carries the reason. An error lists the known tests.
Result<std::vector<measure::SuiteTest>> testsOf(const SuiteOptions& options);

// Returns why no test can be compared with the baseline. Nothing: a comparison is possible, or the
// user asked only for the baseline.
std::optional<std::string> nothingToCompare(const std::vector<measure::SuiteTest>& tests);

std::vector<PageEntry> optimisationEntries();

}  // namespace viaduct::app
