#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/environment.h"
#include "measure/result/report.h"
#include "measure/result/text.h"
#include "measure/run/explain_choice.h"
#include "measure/run/run.h"
#include "viaduct/against.h"
#include "viaduct/bench_output.h"
#include "viaduct/commands.h"
#include "viaduct/interrupt.h"
#include "viaduct/manifest_variables.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"
#include "viaduct/runs.h"
#include "viaduct/workload.h"

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

int runPlan(BenchPlan plan, ResultsFile& results) {
  if (auto seen = seeGpus(plan, stopOnSignals()); !seen)
    return fail(seen.error().text(), kExitFailed);
  const std::string started = measure::startReport(VIADUCT_VERSION, plan.run.settings).started;
  BenchOutput output(plan);
  Runs runs(stepsOf(plan), plan.output == OutputForm::kJson, stopOnSignals());
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
  const RunOutcome outcome = runs.run(plan, progress);
  if (!speaks) return verdictOf(outcome);
  const Report report = reportOf(plan, started, outcome);
  output.end(report);
  const auto written = results.write(report);
  const int code = verdictOf(outcome);
  return written ? code : fail(written.error().text(), kExitFailed);
}

// Tells the user that all workers run here, because a meeting place in the environment may suggest
// otherwise.
void sayThatAllRunHere(const BenchPlan& plan, const Settings& settings) {
  if (plan.run.place || settings.meet.empty() || plan.chose_local) return;
  remark(fmt::format("all workers run here; --meet {} makes them meet workers of other machines",
                     settings.meet));
}

// Returns how many threads need a processor at the same time: those that post, and, unless the
// other end is storage, one of the target's process.
std::uint32_t threadsHere(const measure::Spec& spec) {
  return spec.layout.stored() ? spec.threads : spec.threads + 1;
}

// Explains the choice among the backends that agents open by default, or among those of the command
// line.
Result<int> explainPlan(const BenchPlan& plan, const Settings& environment, ResultsFile& file) {
  measure::ExplainRequest request{.settings = plan.run.settings,
                                  .memory = {plan.run.spec.memory, plan.run.spec.huge_pages},
                                  .initiator_gpu = plan.run.spec.initiator_gpu,
                                  .target_gpu = plan.run.spec.target_gpu,
                                  .require = measure::requireOfTransfer(plan.run.spec.require),
                                  .threads = threadsHere(plan.run.spec)};
  if (plan.run.usual_backends) request.settings.backends = environment.backends;
  VIADUCT_TRY(const auto found, plan.run.spec.layout.stored()
                                    ? measure::explainStorage(request, plan.run.spec)
                                    : measure::explainChoice(request));
  const std::string json = measure::explanationJson(found);
  fmt::print("{}", plan.output == OutputForm::kJson ? json : measure::explanationText(found));
  std::fflush(stdout);
  VIADUCT_CHECK(file.write(json));
  return kExitOk;
}

// Returns the flags that stand for variables of manifests, followed by the typed words.
ManifestWords withVariables(const FlagSheet& sheet, const CommandWords& typed) {
  ManifestWords out = withManifestVariables(typed, sheet.names(), [](const char* name) {
    const char* const value = base::variable(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (out.log_level) base::setLogLevel(*out.log_level);
  return out;
}

}  // namespace

SheetRead readInto(const FlagSheet& sheet, const std::vector<std::string>& words, Repeats repeats,
                   RunOptions& options) {
  // nixlbench takes the last value of a repeated flag, as gflags does.
  SheetRead out = sheet.read(words, options.command == "nixlbench" ? Repeats::kLastWins : repeats);
  std::string usage = options.command;
  for (const FlagName& flag : sheet.names())
    if (isArgument(flag.name)) usage += fmt::format(" {}", flag.name);
  if (!out.help) requireFlags(sheet, "type " + usage, out);
  record(sheet, out, options);
  return out;
}

void record(const FlagSheet& sheet, const SheetRead& read, RunOptions& options) {
  constexpr auto kSecrets = "etcd_password secret obj_access_key obj_secret_key obj_session_token";
  std::set<std::string_view> switches;
  for (const FlagName& flag : sheet.names()) {
    if (flag.yes_or_no) switches.insert(flag.name);
    if (flag.works) options.spec.flags.emplace_back(flag.name);
  }
  for (const Given& one : read.given) {
    GivenFlag& flag = options.given[one.name];
    flag.text = isListed(one.name, kSecrets) ? "(not shown)" : one.text;
    if (switches.contains(one.name)) flag.yes = parseYesNo(one.text).value();
  }
  options.unread = read.unread;
}

int runRows(const std::function<CommandPage()>& page, const FlagSheet& sheet,
            const WorkloadReader& reader, const CommandWords& typed) {
  const auto [words, said, log_level] = withVariables(sheet, typed);
  auto [run, read, planOf] = reader(words, Repeats::kRefused);
  if (read.help) return endedBy(read, run.command, page, kExitUsage).value_or(kExitOk);
  calledAs(run.command);
  const auto settings = measuringSettings();
  if (!settings) read.problems.push_back(settings.error());
  PlanOrProblems planned = planOf(settings ? *settings : Settings{});
  std::ranges::move(planned.problems, std::back_inserter(read.problems));
  if (!read.problems.empty()) return failAll(read.problems);
  BenchPlan& plan = planned.plan;
  for (const std::string& line : plan.remarks) remark(line);
  for (const std::string& line : said) remark(line);
  if (!run.out.explain) sayThatAllRunHere(plan, *settings);
  if (run.has("against")) {
    auto both = planAgainst(plan, words, run, sheet.names(), reader, *settings);
    if (!both.problems.empty()) return failAll(both.problems);
    return runAgainst(std::move(both.plan), run.against, stopOnSignals());
  }
  auto file = ResultsFile::open(plan.json);
  if (!file) return fail(file.error().text(), kExitUsage);
  if (!run.out.explain) return runPlan(std::move(plan), *file);
  return orFail(explainPlan(plan, *settings, *file), kExitFailed);
}

Prepared prepare(const std::function<CommandPage()>& page, const FlagSheet& sheet,
                 RunOptions& options, const CommandWords& typed) {
  const ManifestWords words = withVariables(sheet, typed);
  SheetRead read = readInto(sheet, words.words, Repeats::kRefused, options);
  if (read.help) return {.code = endedBy(read, options.command, page, kExitUsage)};
  calledAs(options.command);
  for (const std::string& line : words.said) remark(line);
  const auto settings = measuringSettings();
  if (!settings) read.problems.push_back(settings.error());
  return {.settings = settings ? *settings : Settings{}, .problems = std::move(read.problems)};
}

}  // namespace viaduct::app
