// Makes a plan from the options: the spec of the run, the meeting place, and the output. Threads:
// plain values; planBench() reads facts about this machine.
#pragma once

#include <viaduct/settings.h>

#include <string>
#include <vector>

#include "measure/run/run.h"
#include "viaduct/bench_options.h"

namespace viaduct::app {

struct BenchPlan {
  measure::RunRequest run = {};
  OutputForm output = OutputForm::kTable;
  std::string json = {};                  // the file for the results; empty: none
  std::vector<std::string> remarks = {};  // what the user should know before the run
  std::string command = {};               // the command line, for people
};

// The plan, or all problems of the options. Problems that may only follow from an unreadable flag
// are left out. `settings` are the agents' settings from the environment.
struct PlanOrProblems {
  BenchPlan plan = {};
  std::vector<Error> problems = {};
};
PlanOrProblems planBench(const BenchOptions& options, const Settings& settings);

// The number of timed and of warm-up transfers of a row, or their duration, as text. Counts are
// rounded as nixlbench rounds them.
struct RowLength {
  std::string timed = {}, warm = {};
};
RowLength rowLength(const BenchOptions& options, const measure::Spec& spec);

// Returns an error for each pair of flags that contradict each other. It names both.
std::vector<Error> contradictions(const BenchOptions& options);

}  // namespace viaduct::app
