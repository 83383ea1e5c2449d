// What a suite says, as a section of the page: a chart of how much better each test is, and a table
// for each. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"
#include "measure/suite/suite.h"

namespace viaduct::measure {

// A suite and what it is called on the page: the name of its file.
struct SuiteSource {
  std::string name = {};
  Suite suite = {};
};

// `id`: of letters, and nobody else's.
std::string suiteHtml(const SuiteSource& source, const std::string& id);

// The rows of each of its tests, for the other sections.
std::vector<Source> sourcesOf(const SuiteSource& source);

}  // namespace viaduct::measure
