// Shows a suite as a section of the page: a chart of each test's improvement, and a table for each
// test. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"
#include "measure/report/suite.h"

namespace viaduct::measure {

// A suite and its name on the page, which is the name of its file.
struct SuiteSource {
  std::string name = {};
  Suite suite = {};
};

// `id` consists of letters and is unique on the page.
std::string suiteHtml(const SuiteSource& source, const std::string& id);

// Returns the rows of each test, for the other sections.
std::vector<Source> sourcesOf(const SuiteSource& source);

}  // namespace viaduct::measure
