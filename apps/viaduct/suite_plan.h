// Makes the runs of `viaduct suite` from its options: one plan for each test. Threads: plain
// values; planSuite() reads facts about this machine.
#pragma once

#include <viaduct/settings.h>

#include <vector>

#include "measure/report/suite.h"
#include "viaduct/bench_plan.h"
#include "viaduct/suite_options.h"

namespace viaduct::app {

struct SuitePlan {
  measure::Suite suite = {};          // without any round
  std::vector<BenchPlan> plans = {};  // by test; the plan of a test that is not measured never runs
};

using SuitePlanOrProblems = OrProblems<SuitePlan>;
// `settings` are the agents' settings from the environment.
SuitePlanOrProblems planSuite(const SuiteOptions& options, const Settings& settings);

}  // namespace viaduct::app
