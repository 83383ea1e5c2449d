#include "viaduct/runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "viaduct/bench_output.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

using measure::RunEnd;

Exit exitCodeOf(RunEnd end) {
  if (end == RunEnd::kInterrupted) return kExitInterrupted;
  return end == RunEnd::kWorkerDied ? kExitWorkerDied : kExitFailed;
}

// Drops unfinished rows, because a comparison needs whole rows. Rows that take turns are
// interrupted together, so unfinished rows are always last.
void dropUnfinished(measure::RunOutcome& outcome) {
  while (!outcome.rows.empty() && outcome.rows.back().interrupted) {
    outcome.rows.pop_back();
    outcome.conclusions.pop_back();
  }
}

std::string leftOutWords(const std::vector<std::string>& backends) {
  const bool one = backends.size() == 1;
  return fmt::format("{} {} left out: {} both ends on one host", fmt::join(backends, " and "),
                     one ? "is" : "are", one ? "it needs" : "they need");
}

measure::RunOutcome measured(const BenchPlan& plan, const measure::Progress& progress,
                             const base::StopFlag& stop) {
  if (plan.matrix) return measureMatrix(plan.run, *plan.matrix, progress, stop);
  return plan.run.place ? runAsMember(plan.run, progress, stop)
                        : runLocally(plan.run, progress, stop);
}

}  // namespace

Status seeGpus(BenchPlan& plan, const base::StopFlag& stop) {
  if (!plan.matrix) return Ok{};
  VIADUCT_TRY(plan.matrix->gpus,
              measure::matrix::seeGpus(plan.run.settings, plan.matrix->numbers, stop));
  return Ok{};
}

std::size_t stepsOf(const BenchPlan& plan) {
  return plan.matrix ? cellsOf(*plan.matrix).size() : plan.run.spec.rows.size();
}

measure::Progress Runs::onLine() {
  return {.remark = remark,
          .waiting = [this](const std::string& what) { line_.waiting(what); },
          .left_out =
              [this](const std::vector<std::string>& backends, std::size_t rows) {
                line_.leaveOut(rows);
                left_out_ = rows;
                if (!std::exchange(told_, true)) remark(leftOutWords(backends));
              },
          .started =
              [this](std::size_t number, const measure::Workload& row) {
                line_.started(steps_before_ + number, row);
              },
          .turn = [this](std::size_t number,
                         const std::string& what) { line_.started(steps_before_ + number, what); },
          .tick = [this](double gb_per_s) { line_.tick(gb_per_s); },
          .preparing = [this](const char* what, std::uint64_t done,
                              std::uint64_t of) { line_.preparing(what, done, of); },
          .finished = [this](const measure::Row& row) { line_.finished(row); }};
}

measure::RunOutcome Runs::run(const BenchPlan& plan, const measure::Progress& progress) {
  measure::RunOutcome outcome = measured(plan, progress, stop_);
  measure::nameRun(outcome.rows);
  line_.clear();
  steps_before_ += stepsOf(plan) - std::exchange(left_out_, 0);
  return outcome;
}

measure::RunOutcome Runs::turn(const BenchPlan& plan, const std::string& turn,
                               const std::string& part) {
  BenchPlan one = plan;
  if (!turn.empty()) one.run.group += "-" + turn;
  line_.part(part);
  measure::Progress progress = onLine();
  if (rank_)
    one.run.rank = rank_;
  else if (one.run.place)
    progress.joined = [](std::uint32_t rank, const std::vector<measure::RunMember>& members) {
      sayWhereResultsAppear(rank, members.size(), members.front().name);
    };
  measure::RunOutcome outcome = run(one, progress);
  dropUnfinished(outcome);
  if (one.run.place) rank_ = outcome.rank;
  believed_ = believed_ && outcome.believed;
  return outcome;
}

std::string endOf(const measure::RunOutcome& outcome) {
  if (outcome.end == RunEnd::kComplete) return "complete";
  return outcome.end == RunEnd::kInterrupted ? "interrupted" : outcome.problem;
}

int exitOfRuns(RunEnd end, const std::string& problem, const std::string& kept, bool believed) {
  if (end != RunEnd::kComplete) return fail(problem + kept, exitCodeOf(end));
  return believed ? kExitOk : fail("not every row is valid", kExitFailed);
}

}  // namespace viaduct::app
