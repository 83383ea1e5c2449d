#include <fmt/format.h>
#include <viaduct/backend.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "base/text_table.h"
#include "measure/report/suite_answers.h"
#include "measure/report/suite_conduct.h"
#include "measure/report/suite_state.h"
#include "measure/report/suite_text.h"
#include "measure/result/text.h"
#include "viaduct/bench_output.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/interrupt.h"
#include "viaduct/remarks.h"
#include "viaduct/runs.h"
#include "viaduct/suite_plan.h"
#include "viaduct/suite_tests.h"
#include "viaduct/test_output.h"

namespace viaduct::app {
namespace {

using measure::Suite;
using measure::SuiteFile;
using measure::TurnsEnd;

// Returns the text that members exchange: the requested suite, and the rounds in their file.
std::string wishOf(Suite wanted, const Suite& suite) {
  wanted.started.clear();
  wanted.rounds = suite.rounds;
  wanted.rounds_done = suite.rounds_done;
  return toJson(wanted);
}

// Removes the settings that differ between hosts.
Suite ofAnyHost(Suite suite) {
  std::erase_if(suite.agent, [](const measure::Option& option) {
    const auto rows = settingRows();
    const auto backends = backendFacts();
    return std::any_of(rows.begin(), rows.end(),
                       [&](const SettingRow& row) {
                         return row.of_host && settingField(row.variable) == option.name;
                       }) ||
           std::any_of(backends.begin(), backends.end(), [&](const BackendFacts& backend) {
             return !backend.variables.empty() && option.name.starts_with(backend.variables);
           });
  });
  return suite;
}

Error unlike(std::size_t rank, const std::string& what) {
  return {.code = Code::kInvalid,
          .operation = "suite",
          .detail = fmt::format("rank {} has other settings: {}", rank, what),
          .remedy = "start all members with the same flags"};
}

// Checks that all members request the same suite. Takes over the number of complete rounds from
// rank 0, which has the file.
Status sameWishes(const measure::Agreed& agreed, const Suite& wanted, Suite& suite) {
  for (std::size_t rank = 0; rank < agreed.by_rank.size(); ++rank) {
    VIADUCT_TRY(const Suite theirs, measure::suiteFromJson(agreed.by_rank[rank], "another member"));
    if (const auto found = differencesOf(ofAnyHost(theirs), ofAnyHost(wanted)); !found.empty())
      return unlike(rank, found.front());
    if (rank == 0) {
      suite.rounds = theirs.rounds;
      if (agreed.rank != 0) suite.rounds_done = theirs.rounds_done;
    } else if (theirs.rounds_done > suite.rounds_done) {
      return Error{
          .code = Code::kInvalid,
          .operation = "suite",
          .detail = fmt::format("rank {} has a file with {}, and rank 0 with {}", rank,
                                measure::counted(theirs.rounds_done, "round"), suite.rounds_done),
          .remedy = "give the member with that file --rank 0"};
    }
  }
  return Ok{};
}

class SuiteCommand {
 public:
  SuiteCommand(const SuiteOptions& options, SuitePlan plan, SuiteFile file, TestOutput tests,
               Suite suite)
      : options_(options),
        plan_(std::move(plan)),
        file_(std::move(file)),
        tests_(std::move(tests)),
        suite_(std::move(suite)),
        kept_(suite_.rounds_done),
        stop_(stopOnSignals()) {}

  int run() {
    const bool alone = !plan_.plans.front().run.place;
    const auto rank = alone ? Result<std::uint32_t>(0) : meet();
    if (!rank) return notMet(rank.error());
    speaks_ = *rank == 0;
    if (speaks_) sayWhatIsDone();
    Runs runs(rowsLeft(), options_.asJson(), stop_);
    if (!alone) runs.keepRank(*rank);
    const TurnsEnd end = measureWith(runs);
    return tell(end, runs.believed());
  }

 private:
  int notMet(const Error& error) const {
    if (stop_.load()) return fail("interrupted", kExitInterrupted);
    return fail(error.text(), error.code == Code::kInvalid ? kExitUsage : kExitFailed);
  }

  TurnsEnd measureWith(Runs& runs) {
    const auto run = [&](std::uint32_t round, std::size_t test) { return one(runs, round, test); };
    const auto save = [&](const Suite& now) -> Status {
      if (!speaks_) return Ok{};
      VIADUCT_CHECK(file_.write(now));
      kept_ = now.rounds_done;
      return Ok{};
    };
    return conduct(suite_, {.run = run, .save = save});
  }

  Result<std::uint32_t> meet() {
    const measure::Progress progress{.remark = remark, .waiting = remark};
    measure::RunRequest request = plan_.plans.front().run;
    request.group += "-suite";
    VIADUCT_TRY(const auto agreed, agree(request, wishOf(plan_.suite, suite_), progress, stop_));
    VIADUCT_CHECK(sameWishes(agreed, plan_.suite, suite_));
    sayWhereResultsAppear(agreed.rank, agreed.by_rank.size(), agreed.first);
    return agreed.rank;
  }

  void sayWhatIsDone() const {
    if (suite_.rounds_done == 0) return;
    if (suite_.rounds_done >= suite_.rounds)
      remark(fmt::format("{} has all {} rounds: nothing is left to measure", file_.name(),
                         suite_.rounds_done));
    else
      remark(fmt::format("continuing after the {} of {}",
                         measure::counted(suite_.rounds_done, "round"), file_.name()));
  }

  std::size_t rowsLeft() const {
    std::size_t rows = 0;
    for (const measure::SuiteTest& test : suite_.tests)
      if (test.absent.empty()) rows += test.sizes.size();
    return rows * (suite_.rounds - suite_.rounds_done);
  }

  measure::RunOutcome one(Runs& runs, std::uint32_t round, std::size_t test) const {
    const std::string& name = suite_.tests[test].name;
    return runs.turn(plan_.plans[test], fmt::format("suite-{}-{}", round + 1, test),
                     fmt::format("round {} of {}, {}", round + 1, suite_.rounds, name));
  }

  std::string keptText() const {
    std::string out =
        fmt::format("; {} of {} rounds are complete", suite_.rounds_done, suite_.rounds);
    if (!speaks_ || file_.name().empty() || suite_.rounds_done == 0) return out;
    if (kept_ < suite_.rounds_done)
      return out + fmt::format(", and {} has {} of them", file_.name(),
                               kept_ == 0 ? "none" : fmt::to_string(kept_));
    return out + fmt::format(" and saved in {}: the same command continues", file_.name());
  }

  // `believed` is true if every row that this command measured is valid. Rank 0 also checks the
  // rows that it read from the file.
  int verdictOf(const TurnsEnd& end, bool believed) const {
    const int code = exitOfRuns(end.end, end.problem, keptText(), believed && allGood(suite_));
    if (code != kExitOk) return code;
    for (const measure::SuiteTest& test : suite_.tests)
      if (!test.absent.empty() && std::find(options_.tests.begin(), options_.tests.end(),
                                            test.name) != options_.tests.end())
        return fail(fmt::format("{} was not measured: {}", test.name, test.absent), kExitFailed);
    return kExitOk;
  }

  int tell(const TurnsEnd& end, bool believed) {
    if (speaks_ && suite_.rounds_done > 0) {
      fmt::print("{}",
                 options_.asJson() ? toJson(suite_) : suiteText(suite_, base::terminalWidth()));
      std::fflush(stdout);
      const auto told = tests_.tell(testsOf(suite_), options_.asJson() ? stderr : stdout);
      if (!told) return fail(told.error().text(), kExitFailed);
    }
    return verdictOf(end, believed);
  }

  const SuiteOptions& options_;
  const SuitePlan plan_;
  const SuiteFile file_;
  TestOutput tests_;
  Suite suite_;
  std::uint32_t kept_;  // number of rounds in the file
  const base::StopFlag& stop_;
  bool speaks_ = true;
};

}  // namespace

int runSuite(const SuiteOptions& asked, const Settings& settings, std::vector<Error> problems) {
  SuiteOptions options = asked;
  if (options.backends.empty()) options.backends = settings.backends;
  if (options.backends.empty()) options.backends = {usualOverNetwork()};
  SuitePlanOrProblems planned = planSuite(options, settings);
  std::move(planned.problems.begin(), planned.problems.end(), std::back_inserter(problems));
  if (!problems.empty()) return failAll(problems);
  auto file = SuiteFile::open(options.out.json, options.fresh);
  if (!file) return fail(file.error().text(), kExitUsage);
  auto suite = goOn(*file, planned.plan.suite);
  if (!suite) return fail(suite.error().text(), kExitUsage);
  if (const auto why = nothingToCompare(suite->tests)) return fail(*why, kExitUsage);
  auto tests = TestOutput::open("viaduct suite", options.against.junit);
  if (!tests) return fail(tests.error().text(), kExitUsage);
  return SuiteCommand(options, std::move(planned.plan), *std::move(file), *std::move(tests),
                      *std::move(suite))
      .run();
}

}  // namespace viaduct::app
