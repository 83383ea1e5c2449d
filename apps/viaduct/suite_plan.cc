#include "viaduct/suite_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/sizes.h"
#include "measure/run/run.h"
#include "viaduct/against_settings.h"
#include "viaduct/bench_values.h"
#include "viaduct/suite_tests.h"

namespace viaduct::app {
namespace {

constexpr std::uint64_t kAnySize = 4096;

// Replaces names of `viaduct bench` flags in errors by this command's names.
Error asAsked(Error error) {
  if (error.operation == "--device_list") error.operation = "--rails";
  if (error.operation == "--block_sizes") error.operation = "--sizes";
  if (error.operation == "memory") error.remedy = "use smaller --sizes or --working_set";
  return error;
}

// Sets one row for each transfer size. A transfer is one block, or is cut into blocks of the
// requested size.
Status setRows(const SuiteOptions& o, const std::vector<std::uint64_t>& sizes,
               std::vector<measure::Workload>& rows) {
  const measure::Workload like = rows.front();
  rows.clear();
  for (const std::uint64_t size : sizes) {
    measure::Workload row = like;
    const std::uint64_t block = o.block == 0 ? size : std::min(o.block, size);
    if (size % block != 0)
      return badFlag(
          "--block and --sizes",
          fmt::format("{} is not a multiple of {}", base::showSize(size), base::showSize(block)),
          "choose a --block that divides every larger size");
    row.block_bytes = block;
    row.batch = static_cast<std::uint32_t>(size / block);
    rows.push_back(row);
    VIADUCT_CHECK(check(row));
  }
  return Ok{};
}

class Planner {
 public:
  Planner(const SuiteOptions& options, const Settings& settings)
      : options_(options), settings_(settings) {}

  SuitePlanOrProblems plan() {
    SuitePlanOrProblems out;
    out.problems = contradictionsOf();
    const std::string& asked = options_.backends.front();
    if (isStorage(asked)) {
      out.problems.push_back(badFlag("--backend", "a suite measures backends between members",
                                     "use viaduct bench --backend " + asked));
      return out;
    }
    const auto probe = planFor({kAnySize}, settings_);
    for (const Error& problem : probe.problems) out.problems.push_back(asAsked(problem));
    if (!out.problems.empty()) return out;
    // Replaces an alias that the user gave by the backend's own name.
    options_.backends = {probe.plan.run.spec.rows.front().backend};
    if (auto done = planTests(out.plan); !done) out.problems.push_back(asAsked(done.error()));
    return out;
  }

 private:
  std::vector<Error> contradictionsOf() const {
    std::vector<Error> out;
    if (options_.backends.size() > 1)
      out.push_back(badFlag(options_.has("backend") ? "--backend" : "VIADUCT_BACKENDS",
                            "a suite measures one backend", "run one suite per backend"));
    if (options_.fresh && options_.out.json.empty())
      out.push_back(badFlag("--fresh", "--fresh needs the file of --json",
                            "omit --fresh, or add --json FILE"));
    for (std::size_t i = 1; i < options_.sizes.size(); ++i)
      if (std::count(options_.sizes.begin(), options_.sizes.end(), options_.sizes[i]) > 1) {
        out.push_back(badFlag("--sizes", base::showSize(options_.sizes[i]) + " is named twice",
                              "name it once"));
        break;
      }
    return out;
  }

  PlanOrProblems planFor(std::vector<std::uint64_t> sizes, const Settings& settings) const {
    BenchOptions bench = options_;
    for (const char* own : {"rounds", "least_effect", "junit"}) bench.given.erase(own);
    bench.block_sizes = std::move(sizes);
    bench.batches = {1};
    return planBench(bench, settings);
  }

  Result<BenchPlan> planTest(const measure::SuiteTest& test, std::uint64_t memory) const {
    std::vector<std::string> assignments;
    assignments.reserve(test.settings.size());
    for (const measure::Option& option : test.settings)
      assignments.push_back(option.name + "=" + option.value);
    VIADUCT_TRY(const Settings agents, withVariables(settings_, assignments));
    PlanOrProblems out = planFor(test.sizes, agents);
    if (!out.problems.empty()) return out.problems.front();
    VIADUCT_CHECK(setRows(options_, test.sizes, out.plan.run.spec.rows));
    out.plan.run.spec.buffer_bytes = memory;
    return std::move(out.plan);
  }

  Status planTests(SuitePlan& into) {
    VIADUCT_TRY(into.suite.tests, testsOf(options_));
    VIADUCT_TRY(const BenchPlan baseline, planTest(into.suite.tests[0], 0));
    // All tests use equal memory, whatever their sizes, so that the memory's layout makes no
    // difference.
    VIADUCT_TRY(const std::uint64_t memory, memoryOf(baseline.run.spec));
    for (const measure::SuiteTest& test : into.suite.tests) {
      VIADUCT_TRY(BenchPlan plan, planTest(test, memory));
      into.plans.push_back(std::move(plan));
    }
    describe(baseline, into.suite);
    return Ok{};
  }

  // Returns the largest memory of a process for the baseline's rows, which have every size.
  static Result<std::uint64_t> memoryOf(const measure::Spec& spec) {
    VIADUCT_TRY(const measure::DeviceBytes bytes, deviceBytes(spec));
    std::uint64_t most = 0;
    for (std::uint32_t rank = 0; rank < spec.layout.processes(); ++rank)
      most = std::max(most, processBytes(spec, bytes, rank));
    return most;
  }

  void describe(const BenchPlan& baseline, measure::Suite& suite) const {
    // Records the settings of the environment, without those that tests change.
    const auto asked = planFor({kAnySize}, settings_);
    const measure::Report now = measure::startReport(VIADUCT_VERSION, asked.plan.run.settings);
    suite.version = now.version;
    suite.started = now.started;
    suite.agent = now.agent;
    suite.settings = optionsOf(baseline.run.spec);
    suite.rounds = options_.rounds;
    suite.least_effect = options_.against.least_effect;
    suite.command = commandText("viaduct suite", options_.given);
    suite.end = fmt::format("0 of {} rounds", suite.rounds);
  }

  SuiteOptions options_;
  const Settings& settings_;
};

}  // namespace

SuitePlanOrProblems planSuite(const SuiteOptions& options, const Settings& settings) {
  return Planner(options, settings).plan();
}

}  // namespace viaduct::app
