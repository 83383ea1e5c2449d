// What `viaduct bench` prints, in each of its forms. Threads: one at a time.
#pragma once

#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/result/table.h"
#include "measure/run/run.h"
#include "viaduct/bench_plan.h"

namespace viaduct::app {

class BenchOutput {
 public:
  BenchOutput(const BenchPlan& plan, const BenchOptions& options)
      : plan_(plan), options_(options) {}

  void head(const std::vector<measure::RunMember>& members) const;
  // Whether standard output is read by people and not by a program.
  bool forPeople() const { return plan_.output == OutputForm::kTable; }
  void row(const measure::Row& row);
  void end(const measure::Report& report) const;

 private:
  const BenchPlan& plan_;
  const BenchOptions& options_;
  measure::TextTable table_;
};

// Says, where members of several terminals meet, at which of them the results appear. `first`: rank
// 0's name.
void sayWhereResultsAppear(std::uint32_t rank, std::size_t members, const std::string& first);

// All of one run, for its file; what limits each backend's fastest row is its conclusion.
measure::Report reportOf(const BenchPlan& plan, std::string started,
                         const measure::RunOutcome& outcome);

}  // namespace viaduct::app
