// The optimisations that `viaduct suite` knows, in one table. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <optional>
#include <string>
#include <vector>

#include "measure/suite/suite.h"
#include "viaduct/suite_options.h"

namespace viaduct::app {

// The baseline, the tests that were asked for, and all of them combined; those that cannot be
// measured here with the reason. An error names what there is.
Result<std::vector<measure::SuiteTest>> testsOf(const SuiteOptions& options);

// Why there is nothing to compare with the baseline; nothing where there is, or where the baseline
// is all that was asked for.
std::optional<std::string> nothingToCompare(const std::vector<measure::SuiteTest>& tests);

std::vector<PageEntry> optimisationEntries();

}  // namespace viaduct::app
