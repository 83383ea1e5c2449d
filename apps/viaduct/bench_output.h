// Prints the output of `viaduct bench` in each of its forms. Threads: one at a time.
#pragma once

#include <string>
#include <vector>

#include "base/text_table.h"
#include "measure/result/report.h"
#include "measure/result/table.h"
#include "measure/run/run.h"
#include "viaduct/bench_plan.h"

namespace viaduct::app {

class BenchOutput {
 public:
  explicit BenchOutput(const BenchPlan& plan) : plan_(plan) {}

  void head(const std::vector<measure::RunMember>& members) const;
  // True if people read standard output, not a program.
  bool forPeople() const { return plan_.output == OutputForm::kTable; }
  void row(const measure::Row& row);
  void end(const measure::Report& report) const;

 private:
  const BenchPlan& plan_;
  measure::RowTable table_{base::terminalWidth()};
  std::string remark_;  // of the last row
};

// Tells the user on which terminal the results appear, for members that run on several. `first` is
// the name of rank 0.
void sayWhereResultsAppear(std::uint32_t rank, std::size_t members, const std::string& first);

// Makes the report of one run for its file. The conclusion says what limits the fastest row of each
// backend.
measure::Report reportOf(const BenchPlan& plan, std::string started,
                         const measure::RunOutcome& outcome);

}  // namespace viaduct::app
