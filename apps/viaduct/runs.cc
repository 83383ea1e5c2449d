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

// Drops an unfinished last row, because a comparison needs whole rows.
void dropUnfinished(measure::RunOutcome& outcome) {
  if (outcome.rows.empty() || !outcome.rows.back().interrupted) return;
  outcome.rows.pop_back();
  outcome.conclusions.pop_back();
}

std::string leftOutWords(const std::vector<std::string>& backends) {
  const bool one = backends.size() == 1;
  return fmt::format("{} {} left out: {} both ends on one host", fmt::join(backends, " and "),
                     one ? "is" : "are", one ? "it needs" : "they need");
}

}  // namespace

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
                line_.started(rows_before_ + number, row);
              },
          .turn = [this](std::size_t number,
                         const std::string& what) { line_.started(rows_before_ + number, what); },
          .tick = [this](double gb_per_s) { line_.tick(gb_per_s); },
          .preparing = [this](const char* what, std::uint64_t done,
                              std::uint64_t of) { line_.preparing(what, done, of); },
          .finished = [this](const measure::Row& row) { line_.finished(row); }};
}

measure::RunOutcome Runs::run(const measure::RunRequest& request,
                              const measure::Progress& progress) {
  measure::RunOutcome outcome =
      request.place ? runAsMember(request, progress, stop_) : runLocally(request, progress, stop_);
  measure::nameRun(outcome.rows);
  line_.clear();
  rows_before_ += request.spec.rows.size() - std::exchange(left_out_, 0);
  return outcome;
}

measure::RunOutcome Runs::turn(const BenchPlan& plan, const std::string& turn,
                               const std::string& part) {
  measure::RunRequest request = plan.run;
  if (!turn.empty()) request.group += "-" + turn;
  line_.part(part);
  measure::Progress progress = onLine();
  if (rank_)
    request.rank = rank_;
  else if (request.place)
    progress.joined = [](std::uint32_t rank, const std::vector<measure::RunMember>& members) {
      sayWhereResultsAppear(rank, members.size(), members.front().name);
    };
  measure::RunOutcome outcome = run(request, progress);
  dropUnfinished(outcome);
  if (request.place) rank_ = outcome.rank;
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
