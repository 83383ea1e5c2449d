#include "viaduct/turns.h"

#include "viaduct/bench_output.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

// A comparison is of whole rows.
void dropUnfinished(measure::RunOutcome& outcome) {
  if (outcome.rows.empty() || !outcome.rows.back().interrupted) return;
  outcome.rows.pop_back();
  outcome.conclusions.pop_back();
}

}  // namespace

measure::RunOutcome Turns::run(const BenchPlan& plan, const std::string& turn,
                               const std::string& part) {
  measure::RunRequest request = plan.run;
  if (rank_) request.rank = rank_;
  if (!turn.empty()) request.group += "-" + turn;
  line_.part(part);
  const bool ranked = rank_.has_value();
  const measure::Progress progress{
      .remark = remark,
      .waiting = [&](const std::string& what) { line_.waiting(what); },
      .joined =
          [&](std::uint32_t rank, const std::vector<measure::Member>& members) {
            if (request.place && !ranked)
              sayWhereResultsAppear(rank, members.size(), members.front().name);
          },
      .started = [&](std::size_t number,
                     const measure::Workload& row) { line_.started(rows_before_ + number, row); },
      .tick = [&](double gb_per_s) { line_.tick(gb_per_s); },
      .finished = [&](const measure::Row& row) { line_.finished(row); }};
  measure::RunOutcome outcome =
      request.place ? runAsMember(request, progress, stop_) : runLocally(request, progress, stop_);
  line_.clear();
  dropUnfinished(outcome);
  rows_before_ += request.spec.rows.size();
  if (request.place) rank_ = outcome.rank;
  believed_ = believed_ && outcome.believed;
  return outcome;
}

}  // namespace viaduct::app
