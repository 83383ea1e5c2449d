// Shows those kinds of rows that have tables of their own: pipelines, swaps, matrices, KV caches,
// traces and patterns. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/series.h"

namespace viaduct::measure {

struct KindSection {
  std::string title = {};  // "Pipeline"
  std::string html = {};
};
// Returns a section for each kind of rows, in the order of their first rows. Plain blocks have
// none, because charts and the table of all rows show them.
std::vector<KindSection> kindSections(const std::vector<Source>& sources);

}  // namespace viaduct::measure
