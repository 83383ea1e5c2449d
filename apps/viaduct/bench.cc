#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "base/environment.h"
#include "measure/explain/explain.h"
#include "measure/result/report.h"
#include "measure/result/text.h"
#include "measure/run/run.h"
#include "viaduct/against.h"
#include "viaduct/bench_output.h"
#include "viaduct/bench_plan.h"
#include "viaduct/commands.h"
#include "viaduct/gpu_matrix.h"
#include "viaduct/interrupt.h"
#include "viaduct/manifest_variables.h"
#include "viaduct/pipeline.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"
#include "viaduct/runs.h"
#include "viaduct/swap.h"

namespace viaduct::app {
namespace {

using measure::Report;
using measure::RunEnd;
using measure::RunOutcome;

int verdictOf(const RunOutcome& outcome) {
  const bool keeps = outcome.end == RunEnd::kInterrupted || outcome.end == RunEnd::kWorkerDied;
  return exitOfRuns(
      outcome.end, outcome.problem,
      keeps ? fmt::format("; {} measured", measure::counted(outcome.rows.size(), "row")) : "",
      outcome.believed);
}

int runPlan(const BenchPlan& plan, const BenchOptions& options, ResultsFile& results) {
  const std::string started = measure::startReport(VIADUCT_VERSION, plan.run.settings).started;
  BenchOutput output(plan, options);
  Runs runs(plan.run.spec.rows.size(), plan.output == OutputForm::kJson, stopOnSignals());
  bool speaks = true;  // false at ranks other than 0, which have no rows
  measure::Progress progress = runs.onLine();
  progress.joined = [&](std::uint32_t rank, const std::vector<measure::RunMember>& members) {
    speaks = rank == 0;
    if (plan.run.place) sayWhereResultsAppear(rank, members.size(), members.front().name);
    if (speaks) output.head(members);
  };
  progress.interval = [&](const measure::RateInterval& interval) {
    if (speaks) runs.line().interval(interval, output.forPeople() ? stdout : stderr);
  };
  progress.finished = [&](const measure::Row& row) {
    runs.line().finished(row);
    output.row(row);
  };
  const RunOutcome outcome = runs.run(plan.run, progress);
  if (!speaks) return verdictOf(outcome);
  const Report report = reportOf(plan, started, outcome);
  output.end(report);
  const auto written = results.write(report);
  const int code = verdictOf(outcome);
  return written ? code : fail(written.error().text(), kExitFailed);
}

// Tells the user that all workers run here. The meeting place in the environment may suggest
// otherwise.
void sayThatAllRunHere(const BenchPlan& plan, const BenchOptions& options,
                       const Settings& settings) {
  if (plan.run.place || settings.meet.empty() || options.has("local_workers")) return;
  remark(fmt::format(
      "all workers run here; --runtime-type etcd makes them meet workers of other machines at {}",
      settings.meet));
}

int planAndCompare(const BenchPlan& plan, const std::vector<std::string>& words,
                   const BenchOptions& options, const Settings& settings) {
  const AgainstPlanOrProblems both = planAgainst(plan, words, options, settings);
  if (!both.problems.empty()) return failAll(both.problems);
  return runAgainst(both.plan, options, stopOnSignals());
}

// Explains the choice among the backends that agents open by default, or among those of the command
// line.
Result<int> explainPlan(const BenchPlan& plan, const BenchOptions& options,
                        const Settings& environment, ResultsFile& file) {
  measure::ExplainRequest request{.settings = plan.run.settings,
                                  .memory = {plan.run.spec.memory, plan.run.spec.huge_pages},
                                  .initiator_gpu = plan.run.spec.initiator_gpu,
                                  .target_gpu = plan.run.spec.target_gpu,
                                  .require = measure::requireOfTransfer(plan.run.spec.require)};
  const bool named = options.has("backend") || options.as_nixlbench;
  if (!named) request.settings.backends = environment.backends;
  VIADUCT_TRY(const auto found, plan.run.spec.layout.stored()
                                    ? measure::explainStorage(request, plan.run.spec)
                                    : measure::explainChoice(request));
  const std::string json = measure::explanationJson(found);
  fmt::print("{}", plan.output == OutputForm::kJson ? json : measure::explanationText(found));
  std::fflush(stdout);
  VIADUCT_CHECK(file.write(json));
  return kExitOk;
}

}  // namespace

int runBench(const std::vector<std::string>& typed, bool as_nixlbench) {
  calledAs(as_nixlbench ? "nixlbench" : "viaduct bench");
  if (typed.size() == 1 && typed[0] == "--help=markdown") {
    fmt::print("{}", benchFlagsPage());
    return kExitOk;
  }
  const auto [words, said, log_level] =
      withManifestVariables(typed, as_nixlbench, [](const char* name) {
        const char* const value = base::variable(name);
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
      });
  if (log_level) base::setLogLevel(*log_level);
  auto [options, problems] = readBenchOptions(words, as_nixlbench);
  if (options.help && problems.empty()) {
    fmt::print("{}", pageHelp(benchPage(as_nixlbench)));
    return kExitOk;
  }
  const auto settings = measuringSettings();
  if (!settings) problems.push_back(settings.error());
  if (options.has("gpu_matrix"))
    return runGpuMatrix(options, settings ? *settings : Settings{}, std::move(problems));
  if (options.has("pipeline"))
    return runPipeline(options, settings ? *settings : Settings{}, std::move(problems));
  if (options.swap) return runSwap(options, settings ? *settings : Settings{}, std::move(problems));
  PlanOrProblems planned = planBench(options, settings ? *settings : Settings{});
  std::move(planned.problems.begin(), planned.problems.end(), std::back_inserter(problems));
  if (!problems.empty()) return failAll(problems);
  for (const std::string& line : planned.plan.remarks) remark(line);
  for (const std::string& line : said) remark(line);
  if (!options.explain) sayThatAllRunHere(planned.plan, options, *settings);
  if (options.has("against")) return planAndCompare(planned.plan, words, options, *settings);
  auto file = ResultsFile::open(planned.plan.json);
  if (!file) return fail(file.error().text(), kExitUsage);
  if (!options.explain) return runPlan(planned.plan, options, *file);
  return orFail(explainPlan(planned.plan, options, *settings, *file), kExitFailed);
}

}  // namespace viaduct::app
