// Runs one or several plans of rows, with one progress line over all of them, and finds the exit
// code. Threads: the main one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/stop.h"
#include "measure/run/run.h"
#include "viaduct/bench_plan.h"
#include "viaduct/bench_progress.h"

namespace viaduct::app {

// Finds the GPUs of a matrix, without which its cells are not known. Other plans need nothing.
Status seeGpus(BenchPlan& plan, const base::StopFlag& stop);
// Returns the steps of a plan on the progress line: its rows, or the cells of a matrix.
std::size_t stepsOf(const BenchPlan& plan);

class Runs {
 public:
  // `steps` is the number of steps of all runs. `quiet` suppresses the progress line.
  Runs(std::size_t steps, bool quiet, const base::StopFlag& stop)
      : stop_(stop), line_(steps, quiet) {}

  BenchProgress& line() { return line_; }
  // Returns callbacks that show a run's events on the progress line.
  measure::Progress onLine();
  measure::RunOutcome run(const BenchPlan& plan, const measure::Progress& progress);

  // Runs one of several compared runs. Each run has a group of its own, so that no member joins a
  // group that others are leaving. `turn` is appended to the group's name. `part` names the rows on
  // the progress line. Unfinished rows are dropped.
  measure::RunOutcome turn(const BenchPlan& plan, const std::string& turn,
                           const std::string& part = {});
  // Sets the rank that this member asks for. The first turn assigns the ranks, if the caller has
  // not.
  void keepRank(std::uint32_t rank) { rank_ = rank; }
  std::optional<std::uint32_t> rank() const { return rank_; }
  // True if every row of every complete turn has a good verdict. Rank 0 sends its verdict to the
  // other ranks at the end of each complete turn.
  bool believed() const { return believed_; }

 private:
  const base::StopFlag& stop_;
  BenchProgress line_;
  std::size_t steps_before_ = 0;
  std::size_t left_out_ = 0;  // rows of the present run that no member measures
  bool told_ = false;         // the user knows that backends are left out
  std::optional<std::uint32_t> rank_;
  bool believed_ = true;
};

// Returns the end of a run for its report: "complete", or the reason of an early end.
std::string endOf(const measure::RunOutcome& outcome);
// Returns the exit code. Prints to stderr why it is not 0. `kept` names the results that survive an
// early end.
int exitOfRuns(measure::RunEnd end, const std::string& problem, const std::string& kept,
               bool believed);

}  // namespace viaduct::app
