// Makes the page of `viaduct report`: one HTML file that needs no network and no script. Threads:
// pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"
#include "measure/report/suite_section.h"

namespace viaduct::measure {

// `version` is the version of this program. Suites have their own sections, and their rows must
// also be among `sources`. An empty `title` is replaced by one made from the sources.
std::string reportPage(const std::vector<Source>& sources, const std::string& version,
                       const std::vector<SuiteSource>& suites = {}, const std::string& title = {});

}  // namespace viaduct::measure
