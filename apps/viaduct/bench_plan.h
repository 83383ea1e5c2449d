// From options to what is to be done: a run's spec, where its workers meet, what comes out.
// Threads: plain values; planBench() looks at this machine.
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
  std::string json = {};     // the file to write; empty: none
  std::string command = {};  // as it was given, for people
};

// All that is wrong with the options, or the plan. What may only be wrong because a flag could not
// be read is left out. `settings` are the agents' as the environment has them.
struct PlanOrProblems {
  BenchPlan plan = {};
  std::vector<Error> problems = {};
};
PlanOrProblems planBench(const BenchOptions& options, const Settings& settings);

// How many transfers of a row are timed, and warm it up, in words: their number, rounded as
// nixlbench rounds it, or for how long.
struct RowLength {
  std::string timed = {}, warm = {};
};
RowLength rowLength(const BenchOptions& options, const measure::Spec& spec);

// Flags that contradict each other, each pair named together.
std::vector<Error> contradictions(const BenchOptions& options);

}  // namespace viaduct::app
