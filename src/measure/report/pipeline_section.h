// Shows a pipeline as a section of the page: a table of its stages, and the slowest of them.
// Threads: pure functions.
#pragma once

#include <string>

#include "measure/pipeline/pipeline_output.h"
#include "measure/report/series.h"

namespace viaduct::measure {

// A pipeline and its name on the page, which is the name of its file.
struct PipelineSource {
  std::string name = {};
  pipeline::PipelineReport report = {};
};

std::string pipelineHtml(const PipelineSource& source);

// Returns a source without rows: the command, the hosts and the end.
Source sourceOf(const PipelineSource& source);

}  // namespace viaduct::measure
