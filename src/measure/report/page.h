// The page that `viaduct report` writes: one file of HTML that needs nothing else, no network and
// no script. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"

namespace viaduct::measure {

// `version`: of the viaduct that makes the page.
std::string reportPage(const std::vector<Source>& sources, const std::string& version);

}  // namespace viaduct::measure
