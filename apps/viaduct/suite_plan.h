// From what was asked of `viaduct suite` to runs: one plan for each test. Threads: plain values;
// planSuite() looks at this machine.
#pragma once

#include <viaduct/settings.h>

#include <vector>

#include "measure/suite/suite.h"
#include "viaduct/bench_plan.h"
#include "viaduct/suite_options.h"

namespace viaduct::app {

struct SuitePlan {
  measure::Suite suite = {};          // without any round yet
  std::vector<BenchPlan> plans = {};  // by test; of those that are not measured it is never run
};

struct SuitePlanOrProblems {
  SuitePlan plan = {};
  std::vector<Error> problems = {};
};
// `settings` are the agents' as the environment has them.
SuitePlanOrProblems planSuite(const SuiteOptions& options, const Settings& settings);

}  // namespace viaduct::app
