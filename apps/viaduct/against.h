// Runs --against: measures two configurations in turns and compares them. Threads:
// the main one.
#pragma once

#include <string>
#include <vector>

#include "viaduct/against_settings.h"
#include "viaduct/workload.h"

namespace viaduct::app {

struct AgainstPlan {
  BenchPlan a = {}, b = {};              // the plan of one round
  std::string a_name = {}, b_name = {};  // the names of the sides in the output
};
using AgainstPlanOrProblems = OrProblems<AgainstPlan>;  // errors in side B's options
// `a` is the plan of the command line without --against. `words` and `options` are that command
// line, before and after parsing; `known` are its flags.
AgainstPlanOrProblems planAgainst(const BenchPlan& a, const std::vector<std::string>& words,
                                  const RunOptions& options, const std::vector<FlagName>& known,
                                  const WorkloadReader& reader, const Settings& settings);

// Returns the exit code. If `stop` is set, compares the rows measured until then.
int runAgainst(AgainstPlan plan, const AgainstOptions& options, const base::StopFlag& stop);

}  // namespace viaduct::app
