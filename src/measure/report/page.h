// The page that `viaduct report` writes: one file of HTML that needs nothing else, no network and
// no script. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"
#include "measure/report/suite_section.h"

namespace viaduct::measure {

// `version`: of the viaduct that makes the page. `suites`: they have sections of their own; their
// rows are among the sources. `title`: empty for one that is made from the sources.
std::string reportPage(const std::vector<Source>& sources, const std::string& version,
                       const std::vector<SuiteSource>& suites = {}, const std::string& title = {});

}  // namespace viaduct::measure
