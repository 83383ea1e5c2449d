#include "viaduct/against.h"

#include <fmt/format.h>

#include <cstdio>

#include "measure/result/text.h"
#include "measure/stats/compare_output.h"
#include "measure/stats/turns.h"
#include "viaduct/bench_output.h"
#include "viaduct/commands.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"
#include "viaduct/turns.h"

namespace viaduct::app {
namespace {

using measure::Report;
using measure::RunEnd;
using measure::RunOutcome;

class BothInTurns {
 public:
  BothInTurns(const AgainstPlan& plan, std::uint32_t rounds, const base::StopFlag& stop)
      : plan_(plan),
        rounds_(rounds),
        turns_(std::size_t{2} * rounds * plan.a.run.spec.rows.size(),
               plan.a.output == OutputForm::kJson, stop) {}

  void run() {
    for (std::uint32_t turn = 0; turn < 2 * rounds_ && end_ == RunEnd::kComplete; ++turn)
      one(turn, measure::isTurnOfA(turn));
  }

  RunEnd end() const { return end_; }
  const std::string& problem() const { return problem_; }
  bool believed() const { return turns_.believed(); }
  bool speaks() const { return turns_.rank().value_or(0) == 0; }
  const std::vector<Report>& a() const { return a_; }
  const std::vector<Report>& b() const { return b_; }

 private:
  void one(std::uint32_t turn, bool of_a) {
    const BenchPlan& plan = of_a ? plan_.a : plan_.b;
    const std::string started = measure::startReport(VIADUCT_VERSION, plan.run.settings).started;
    // The first group has the name that was asked for.
    const RunOutcome outcome = turns_.run(plan, turn == 0 ? "" : fmt::format("turn-{}", turn));
    end_ = outcome.end;
    problem_ = outcome.problem;
    if (!outcome.rows.empty()) (of_a ? a_ : b_).push_back(reportOf(plan, started, outcome));
  }

  const AgainstPlan& plan_;
  const std::uint32_t rounds_;
  Turns turns_;
  RunEnd end_ = RunEnd::kComplete;
  std::string problem_;
  std::vector<Report> a_, b_;
};

int verdictOf(const BothInTurns& turns) {
  const std::string kept =
      fmt::format("; runs with rows: {} of A, {} of B", turns.a().size(), turns.b().size());
  switch (turns.end()) {
    case RunEnd::kComplete:
      break;
    case RunEnd::kInterrupted:
      return fail(turns.problem() + kept, kExitInterrupted);
    case RunEnd::kWorkerDied:
      return fail(turns.problem() + kept, kExitWorkerDied);
    case RunEnd::kFailed:
      return fail(turns.problem(), kExitFailed);
  }
  return turns.believed() ? kExitOk : fail("not every row is valid", kExitFailed);
}

std::string sideOf(const std::string& name, const std::vector<Report>& side) {
  return fmt::format("{} ({})", name, measure::counted(side.size(), "run"));
}

measure::CompareOptions howToCompare(const BenchOptions& options) {
  return {.across_machines = true,
          .across_settings = true,
          .across_time = true,  // they do take turns
          .by_place = true,
          .slower = options.slower,
          .least_effect = options.least_effect};
}

// Compares, prints and writes.
Result<measure::Comparison> tell(const AgainstPlan& plan, const BenchOptions& options,
                                 const BothInTurns& turns, ResultsFile& file) {
  const measure::CompareOptions how = howToCompare(options);
  VIADUCT_TRY(measure::Comparison found, measure::compare(turns.a(), turns.b(), how));
  const measure::ComparedFiles names{sideOf(plan.a_name, turns.a()),
                                     sideOf(plan.b_name, turns.b())};
  const std::string json = measure::compareJson(found, names);
  fmt::print("{}",
             plan.a.output == OutputForm::kJson ? json : measure::compareText(found, names, how));
  std::fflush(stdout);
  VIADUCT_CHECK(file.write(json));
  return found;
}

}  // namespace

int runAgainst(const AgainstPlan& plan, const BenchOptions& options, const base::StopFlag& stop) {
  auto file = ResultsFile::open(plan.a.json);
  if (!file) return fail(file.error().text(), kExitUsage);
  BothInTurns turns(plan, options.rounds, stop);
  turns.run();
  if (!turns.speaks()) return verdictOf(turns);
  if (turns.end() != RunEnd::kComplete && (turns.a().empty() || turns.b().empty()))
    return verdictOf(turns);
  const auto found = tell(plan, options, turns, *file);
  const int code = verdictOf(turns);
  if (!found) return fail(found.error().text(), kExitFailed);
  if (std::ferror(stdout) != 0) return fail("standard output could not be written", kExitFailed);
  return code == kExitOk ? endOf(*found, howToCompare(options)) : code;
}

}  // namespace viaduct::app
