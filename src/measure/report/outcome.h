// What came of it all, at the top of the page: as a picture, and in words with the reasons.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"
#include "measure/report/suite_section.h"

namespace viaduct::measure {

// When it was measured, on what, and by which commands.
std::string titleOf(const std::vector<Source>& sources);
std::string originHtml(const std::vector<Source>& sources);

// Rows by verdict, a suite's answers, the best rate of each line; then every row that cannot be
// used or is unproven, with its reason.
std::string outcomeHtml(const std::vector<Source>& sources, const std::vector<SuiteSource>& suites);

}  // namespace viaduct::measure
