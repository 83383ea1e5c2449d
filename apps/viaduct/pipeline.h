// `viaduct pipeline` measures the stages between storage and hosts. Threads: the main one.
#pragma once

#include <viaduct/settings.h>

#include <vector>

#include "measure/pipeline/pipeline.h"
#include "measure/pipeline/pipeline_run.h"
#include "measure/pipeline/storage.h"
#include "viaduct/bench_plan.h"

namespace viaduct::app {

struct PipelineOptions : RunOptions {
  measure::pipeline::Pipeline pipeline = {};
  measure::pipeline::StorageOptions storage = {};
};

// Runs the pipeline of the options, and returns the exit code. Prints `problems` and those of the
// pipeline instead, if there are any.
int runPipeline(const PipelineOptions& options, const Settings& settings,
                std::vector<Error> problems);

struct PipelinePlan {
  BenchPlan bench = {};
  measure::pipeline::PipelineRequest request = {};
};
using PipelinePlanOrProblems = OrProblems<PipelinePlan>;
PipelinePlanOrProblems planPipeline(const PipelineOptions& options, const Settings& settings);

}  // namespace viaduct::app
