// The outcome of all runs at the top of the page: as a picture, and as text with reasons. Threads:
// pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"
#include "measure/report/suite_section.h"

namespace viaduct::measure {

// titleOf() names the backends and hosts. originHtml() has the dates, programs and commands of the
// measurements.
std::string titleOf(const std::vector<Source>& sources);
std::string originHtml(const std::vector<Source>& sources);

// Shows the rows by verdict, the answers of suites, and the best rate of each line. Then lists each
// invalid or unproven row with its reason.
std::string outcomeHtml(const std::vector<Source>& sources, const std::vector<Series>& series,
                        const std::vector<SuiteSource>& suites);

}  // namespace viaduct::measure
