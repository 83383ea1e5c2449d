#include "viaduct/pipeline.h"

#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "base/text_table.h"
#include "measure/pipeline/pipeline_output.h"
#include "measure/result/text.h"
#include "viaduct/bench_output.h"
#include "viaduct/interrupt.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"
#include "viaduct/runs.h"

namespace viaduct::app {
namespace {

using measure::RunOutcome;
using measure::pipeline::PipelineReport;
using measure::pipeline::PipelineResult;

PipelineReport reportOf(const PipelinePlan& plan, std::string started, const RunOutcome& outcome,
                        const PipelineResult& result) {
  return {.version = VIADUCT_VERSION,
          .started = std::move(started),
          .command = plan.bench.command,
          .end = endOf(outcome),
          .pipeline = plan.request.pipeline.text,
          .members = outcome.members,
          .bytes = result.bytes,
          .rounds = result.rounds,
          .checked = result.checked,
          .rates = result.rates};
}

int measurePipeline(PipelinePlan plan, ResultsFile& file) {
  using namespace measure::pipeline;
  std::string started = measure::startReport(VIADUCT_VERSION, plan.bench.run.settings).started;
  PipelineResult result;
  const bool as_json = plan.bench.output == OutputForm::kJson;
  Runs runs(stepsOf(plan.request), as_json, stopOnSignals());
  bool speaks = true;
  measure::Progress progress = runs.onLine();
  progress.step = [&](std::size_t number, const std::string& what) {
    runs.line().started(number, what);
  };
  progress.joined = [&](std::uint32_t rank, const std::vector<measure::RunMember>& members) {
    speaks = rank == 0;
    if (plan.bench.run.place) sayWhereResultsAppear(rank, members.size(), members.front().name);
  };
  plan.bench.run.work_options = optionsOf(plan.request);
  plan.bench.run.work = [&](const measure::MemberScene& scene) {
    return runMember(plan.request, scene, result);
  };
  const RunOutcome outcome = runs.run(plan.bench.run, progress);
  const std::string kept =
      result.rounds == 0 ? ""
                         : fmt::format("; {} measured", measure::counted(result.rounds, "round"));
  if (!speaks) return exitOfRuns(outcome.end, outcome.problem, kept, true);
  const PipelineReport report = reportOf(plan, std::move(started), outcome, result);
  const std::string json = pipelineJson(report);
  fmt::print("{}", as_json ? json : pipelineText(report, base::terminalWidth()));
  std::fflush(stdout);
  const auto written = file.write(json);
  const int code = exitOfRuns(outcome.end, outcome.problem, kept, true);
  return written ? code : fail(written.error().text(), kExitFailed);
}

}  // namespace

int runPipeline(const PipelineOptions& options, const Settings& settings,
                std::vector<Error> problems) {
  // Further problems may only follow from an unreadable flag.
  if (!problems.empty()) return failAll(problems);
  PipelinePlanOrProblems planned = planPipeline(options, settings);
  if (!planned.problems.empty()) return failAll(planned.problems);
  auto file = ResultsFile::open(options.out.json);
  if (!file) return fail(file.error().text(), kExitUsage);
  return measurePipeline(std::move(planned.plan), *file);
}

}  // namespace viaduct::app
