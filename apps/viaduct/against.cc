#include "viaduct/against.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/text_table.h"
#include "measure/report/compare_output.h"
#include "measure/result/text.h"
#include "measure/run/turns.h"
#include "viaduct/bench_output.h"
#include "viaduct/commands.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"
#include "viaduct/runs.h"

namespace viaduct::app {
namespace {

using measure::Report;
using measure::RunEnd;
using measure::RunOutcome;
using measure::TurnsEnd;

class BothInTurns {
 public:
  BothInTurns(const AgainstPlan& plan, std::uint32_t rounds, const base::StopFlag& stop)
      : plan_(plan),
        runs_(std::size_t{2} * rounds * stepsOf(plan.a), plan.a.output == OutputForm::kJson, stop) {
    end_ = measure::takeTurns(2, 0, rounds,
                              {.turn = [this](const measure::Turn& turn) { return one(turn); },
                               .whole = [](std::uint32_t) { return TurnsEnd{}; }});
  }

  RunEnd end() const { return end_.end; }
  bool speaks() const { return runs_.rank().value_or(0) == 0; }
  const std::vector<Report>& a() const { return a_; }
  const std::vector<Report>& b() const { return b_; }

  int verdict() const {
    const bool keeps = end() == RunEnd::kInterrupted || end() == RunEnd::kWorkerDied;
    return exitOfRuns(
        end(), end_.problem,
        keeps ? fmt::format("; runs with rows: {} of A, {} of B", a_.size(), b_.size()) : "",
        runs_.believed());
  }

 private:
  TurnsEnd one(const measure::Turn& turn) {
    const BenchPlan& plan = turn.side == 0 ? plan_.a : plan_.b;
    const std::string started = measure::startReport(VIADUCT_VERSION, plan.run.settings).started;
    // The first run's group has the requested name.
    const RunOutcome outcome = runs_.turn(plan, begun_ == 0 ? "" : fmt::format("turn-{}", begun_));
    ++begun_;
    if (!outcome.rows.empty())
      (turn.side == 0 ? a_ : b_).push_back(reportOf(plan, started, outcome));
    return {outcome.end, outcome.problem};
  }

  const AgainstPlan& plan_;
  Runs runs_;
  std::uint32_t begun_ = 0;  // number of runs that have begun
  TurnsEnd end_;
  std::vector<Report> a_, b_;
};

std::string sideOf(const std::string& name, const std::vector<Report>& side) {
  return fmt::format("{} ({})", name, measure::counted(side.size(), "run"));
}

measure::CompareOptions howToCompare(const AgainstOptions& options) {
  return {.across_machines = true,
          .across_settings = true,
          .across_time = true,  // this command has made its runs in turns
          .by_place = true,
          .slower = options.slower,
          .least_effect = options.least_effect};
}

// Compares the runs, prints the result and writes the file.
Result<measure::Comparison> tell(const AgainstPlan& plan, const AgainstOptions& options,
                                 const BothInTurns& turns, ResultsFile& file) {
  const measure::CompareOptions how = howToCompare(options);
  VIADUCT_TRY(measure::Comparison found, measure::compare(turns.a(), turns.b(), how));
  const measure::ComparedFiles names{sideOf(plan.a_name, turns.a()),
                                     sideOf(plan.b_name, turns.b())};
  const std::string json = measure::compareJson(found, names);
  fmt::print("{}", plan.a.output == OutputForm::kJson
                       ? json
                       : measure::compareText(found, names, how, base::terminalWidth()));
  std::fflush(stdout);
  VIADUCT_CHECK(file.write(json));
  return found;
}

}  // namespace

int runAgainst(AgainstPlan plan, const AgainstOptions& options, const base::StopFlag& stop) {
  auto file = ResultsFile::open(plan.a.json);
  if (!file) return fail(file.error().text(), kExitUsage);
  if (auto seen = seeGpus(plan.a, stop); !seen) return fail(seen.error().text(), kExitFailed);
  plan.b.matrix = plan.a.matrix;
  const BothInTurns turns(plan, options.rounds, stop);
  if (!turns.speaks()) return turns.verdict();
  if (turns.end() != RunEnd::kComplete && (turns.a().empty() || turns.b().empty()))
    return turns.verdict();
  const auto found = tell(plan, options, turns, *file);
  const int code = turns.verdict();
  if (!found) return fail(found.error().text(), kExitFailed);
  return code == kExitOk ? endOf(*found, howToCompare(options)) : code;
}

}  // namespace viaduct::app
