// `viaduct bench --pipeline` measures the stages between storage and hosts. Threads: the main one.
#pragma once

#include <viaduct/settings.h>

#include <vector>

#include "measure/pipeline/pipeline_run.h"
#include "viaduct/bench_plan.h"

namespace viaduct::app {

// Runs the pipeline of the options, and returns the exit code. Prints `problems` and those of the
// pipeline instead, if there are any.
int runPipeline(const BenchOptions& options, const Settings& settings, std::vector<Error> problems);

struct PipelinePlan {
  BenchPlan bench = {};
  measure::pipeline::PipelineRequest request = {};
};
struct PipelinePlanOrProblems {
  PipelinePlan plan = {};
  std::vector<Error> problems = {};
};
PipelinePlanOrProblems planPipeline(const BenchOptions& options, const Settings& settings);

}  // namespace viaduct::app
