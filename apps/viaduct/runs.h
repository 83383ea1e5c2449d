// Runs of `viaduct bench`, alone or in turns with others: one line of progress over all of them,
// and the exit code of how they end. Threads: the main one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/stop.h"
#include "measure/run/run.h"
#include "viaduct/bench_plan.h"
#include "viaduct/bench_progress.h"

namespace viaduct::app {

class Runs {
 public:
  // `rows`: of all runs together. `quiet`: no line of progress.
  Runs(std::size_t rows, bool quiet, const base::StopFlag& stop)
      : stop_(stop), line_(rows, quiet) {}

  BenchProgress& line() { return line_; }
  // What a run tells, as far as the line shows it.
  measure::Progress onLine();
  measure::RunOutcome run(const measure::RunRequest& request, const measure::Progress& progress);

  // One of several runs that are compared. Each is a group of its own, so that nobody joins the one
  // that others are just leaving: `turn` is put behind the group's name. `part`: what the rows are
  // part of, for the line. Rows that were not finished are left out.
  measure::RunOutcome turn(const BenchPlan& plan, const std::string& turn,
                           const std::string& part = {});
  // Of this member; the first turn has shared out the ranks, or somebody before it.
  void keepRank(std::uint32_t rank) { rank_ = rank; }
  std::optional<std::uint32_t> rank() const { return rank_; }
  // Whether every row of every turn is to be believed; known at every rank.
  bool believed() const { return believed_; }

 private:
  const base::StopFlag& stop_;
  BenchProgress line_;
  std::size_t rows_before_ = 0;
  std::optional<std::uint32_t> rank_;
  bool believed_ = true;
};

// The exit code; says on standard error why it is not 0. `kept`: what there is in spite of an early
// end.
int exitOfRuns(measure::RunEnd end, const std::string& problem, const std::string& kept,
               bool believed);

}  // namespace viaduct::app
