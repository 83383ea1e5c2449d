// Shows the pipelines of a source as a section of the page: a table of their stages, and the
// slowest of them. Threads: pure functions.
#pragma once

#include <string>

#include "measure/report/series.h"

namespace viaduct::measure {

// Empty if the source has no rows of a pipeline.
std::string pipelineHtml(const Source& source);

}  // namespace viaduct::measure
