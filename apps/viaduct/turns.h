// Runs one after another that are compared with each other, with one line of progress over all of
// them. Threads: the main one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/stop.h"
#include "measure/run/run.h"
#include "viaduct/bench_plan.h"
#include "viaduct/bench_progress.h"

namespace viaduct::app {

class Turns {
 public:
  // `rows`: of all runs together. `quiet`: no line of progress.
  Turns(std::size_t rows, bool quiet, const base::StopFlag& stop)
      : stop_(stop), line_(rows, quiet) {}

  // Every run is a group of its own, so that nobody joins the one that others are just leaving:
  // `turn` is put behind the group's name. `part`: what the rows are part of, for the line.
  measure::RunOutcome run(const BenchPlan& plan, const std::string& turn,
                          const std::string& part = {});

  // Of this member; the first run has shared out the ranks, or somebody before it.
  void keepRank(std::uint32_t rank) { rank_ = rank; }
  std::optional<std::uint32_t> rank() const { return rank_; }
  // Whether every row of every run is to be believed; known at every rank.
  bool believed() const { return believed_; }

 private:
  const base::StopFlag& stop_;
  BenchProgress line_;
  std::size_t rows_before_ = 0;
  std::optional<std::uint32_t> rank_;
  bool believed_ = true;
};

}  // namespace viaduct::app
