// `viaduct bench --against`: runs of two settings in turns, and their comparison. Threads: the main
// one.
#pragma once

#include <string>
#include <vector>

#include "viaduct/against_settings.h"
#include "viaduct/bench_plan.h"

namespace viaduct::app {

struct AgainstPlan {
  BenchPlan a = {}, b = {};              // each for one round
  std::string a_name = {}, b_name = {};  // in words
};
struct AgainstPlanOrProblems {
  AgainstPlan plan = {};
  std::vector<Error> problems = {};  // of the other side
};
// `a`: the plan of the command line, `words` and `options`, as it stands.
AgainstPlanOrProblems planAgainst(const BenchPlan& a, const std::vector<std::string>& words,
                                  const BenchOptions& options, const Settings& settings);

// The exit code. Stops at `stop`, and compares what was measured until then.
int runAgainst(const AgainstPlan& plan, const BenchOptions& options, const base::StopFlag& stop);

}  // namespace viaduct::app
