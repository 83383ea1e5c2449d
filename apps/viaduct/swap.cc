#include "viaduct/swap.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/text_table.h"
#include "measure/result/text.h"
#include "measure/swap/swap_output.h"
#include "measure/swap/swap_run.h"
#include "viaduct/bench_output.h"
#include "viaduct/interrupt.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"
#include "viaduct/runs.h"

namespace viaduct::app {
namespace {

using measure::RunEnd;
using measure::RunOutcome;

int measureSwap(SwapPlan plan, ResultsFile& file) {
  using namespace measure::swap;
  std::string started = measure::startReport(VIADUCT_VERSION, plan.bench.run.settings).started;
  const bool as_json = plan.bench.output == OutputForm::kJson;
  SwapResult result;
  Runs runs(casesOf(plan.request).size(), as_json, stopOnSignals());
  measure::Progress progress = runs.onLine();
  progress.step = [&](std::size_t number, const std::string& what) {
    runs.line().started(number, what);
  };
  plan.bench.run.work = [&](const measure::MemberScene& scene) {
    return measure::swap::runSwap(plan.request, scene, result);
  };
  const RunOutcome outcome = runs.run(plan.bench.run, progress);
  const SwapReport report{.version = VIADUCT_VERSION,
                          .started = std::move(started),
                          .command = plan.bench.command,
                          .end = endOf(outcome),
                          .members = outcome.members,
                          .blocks = plan.request.blocks,
                          .rounds = plan.request.rounds,
                          .result = std::move(result)};
  const std::string json = swapJson(report);
  fmt::print("{}", as_json ? json : swapText(report, base::terminalWidth()));
  std::fflush(stdout);
  const auto written = file.write(json);
  const std::size_t cases = report.result.cases.size();
  const int code =
      exitOfRuns(outcome.end, outcome.problem,
                 cases == 0 ? "" : fmt::format("; {} measured", measure::counted(cases, "case")),
                 report.result.good());
  return written ? code : fail(written.error().text(), kExitFailed);
}

}  // namespace

int runSwap(const SwapOptions& options, const Settings& settings, std::vector<Error> problems) {
  // Further problems may only follow from an unreadable flag.
  if (!problems.empty()) return failAll(problems);
  SwapPlanOrProblems planned = planSwap(options, settings);
  if (!planned.problems.empty()) return failAll(planned.problems);
  auto file = ResultsFile::open(options.out.json);
  if (!file) return fail(file.error().text(), kExitUsage);
  return measureSwap(std::move(planned.plan), *file);
}

}  // namespace viaduct::app
