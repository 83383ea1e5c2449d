// Makes the page of `viaduct report`: one HTML file that needs no network and no script. Threads:
// pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"
#include "measure/report/suite_section.h"

namespace viaduct::measure {

// `version` is the version of this viaduct. Suites have sections of their own, and are among the
// sources, too. An empty `title` is made from the sources.
std::string reportPage(const std::vector<Source>& sources, const std::string& version,
                       const std::vector<SuiteSource>& suites = {}, const std::string& title = {});

}  // namespace viaduct::measure
