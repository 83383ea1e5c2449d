// The tables of a report: its runs, machines, settings and rows. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"

namespace viaduct::measure {

std::string runsHtml(const std::vector<Source>& sources);
std::string conclusionsHtml(const std::vector<Source>& sources);
std::string rowsHtml(const std::vector<Source>& sources);
std::string environmentHtml(const std::vector<Source>& sources);
std::string settingsHtml(const std::vector<Source>& sources);

}  // namespace viaduct::measure
