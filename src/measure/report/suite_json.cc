#include "measure/report/suite.h"
#include "measure/report/suite_answers.h"
#include "measure/result/report_json.h"
#include "measure/result/row_json.h"

namespace viaduct::measure {
namespace {

constexpr FormatName kSuiteFormat{
    .front = "viaduct-suite/", .version = 1, .writer = "viaduct suite"};
constexpr const char* kReadingSuite = "read suite file";

}  // namespace

// The JSON reader and writer find the describe() functions below by argument-dependent lookup, so
// these stay outside of the unnamed namespace.
struct NamedRun {
  std::uint32_t round = 0;
  std::string test = {};
  std::vector<Row> rows = {};
};
struct NamedCell {
  const std::string& test;
  const SuiteCell& cell;
  bool baseline;
};

void describe(auto& json, base::Is<SuiteTest> auto& test) {
  json.need("name", test.name);
  json.need("settings", test.settings);
  json.need("sizes", test.sizes);
  json.may("expected", test.expected);
  json.may("not_measured", test.absent);
  json.may("shows", test.shows);
}

void describe(auto& json, base::Is<NamedRun> auto& run) {
  json.need("round", run.round);
  json.need("test", run.test);
  json.need("rows", run.rows);
}

// Describes the fields that are read. The file also has results that follow from these fields.
void describe(auto& json, base::Is<Suite> auto& suite) {
  json.need("version", suite.version);
  json.need("started", suite.started);
  json.need("end", suite.end);
  json.need("command", suite.command);
  json.need("environment", suite.environment);
  AllOptions options{suite.settings, suite.agent};
  json.need("settings", options);
  json.need("rounds", suite.rounds);
  json.need("rounds_done", suite.rounds_done);
  json.need("least_effect", suite.least_effect);
  json.need("tests", suite.tests);
}

void describe(JsonWriter& to, const Improvement& improvement) {
  to.need("value", improvement.value);
  if (const auto& interval = improvement.interval)
    to.need("interval_95", std::vector{interval->low, interval->high});
}

void describe(JsonWriter& to, const NamedCell& named) {
  const SuiteCell& cell = named.cell;
  to.need("test", named.test);
  to.need("size", cell.size);
  to.may("gb_per_s", cell.figures.gb_per_s);
  to.may("p50_us", cell.figures.p50_us);
  to.may("p95_us", cell.figures.p95_us);
  to.may("p99_us", cell.figures.p99_us);
  to.may("cores_busy", cell.figures.cores_busy);
  to.may("completions_per_s", cell.figures.completions_per_s);
  to.may("rails", cell.figures.rails);
  if (!named.baseline) {
    to.may("rate_improvement", cell.rate);
    to.may("latency_improvement", cell.latency);
    to.need("judged_by", std::string(judgedByName(judgedBy(cell.size))));
    to.need("answer", std::string(answerName(cell.answer)));
  }
  to.may("note", cell.note);
}

namespace {

// Checks the rules that the fields alone do not express.
Status takeRuns(std::vector<NamedRun> runs, Suite& into, const std::string& file) {
  const auto wrong = [&](std::string detail) {
    return Error{.code = Code::kProtocol,
                 .operation = kReadingSuite,
                 .detail = std::move(detail),
                 .file = file};
  };
  if (into.tests.empty()) return wrong("tests: there are none");
  for (NamedRun& run : runs) {
    std::size_t test = 0;
    while (test < into.tests.size() && into.tests[test].name != run.test) ++test;
    if (test == into.tests.size()) return wrong("runs: \"" + run.test + "\" is none of its tests");
    if (run.round >= into.rounds_done) return wrong("runs: a run belongs to an unfinished round");
    into.runs.push_back({.round = run.round, .test = test, .rows = std::move(run.rows)});
  }
  return Ok{};
}

}  // namespace

std::string toJson(const Suite& suite) {
  std::vector<NamedCell> results;
  std::vector<NamedRun> runs;
  runs.reserve(suite.runs.size());
  Json conclusion = Json::object();
  const std::vector<SuiteAnswers> all = answersOf(suite);
  for (const SuiteAnswers& answers : all) {
    const std::string& test = suite.tests[answers.test].name;
    if (!answers.text.empty()) conclusion[test] = answers.text;
    for (const SuiteCell& cell : answers.cells) results.push_back({test, cell, answers.test == 0});
  }
  for (const SuiteRun& run : suite.runs)
    runs.push_back({run.round, suite.tests[run.test].name, run.rows});
  Json out = JsonWriter::of(suite);
  out["conclusion"] = std::move(conclusion);
  out["results"] = JsonWriter::of(results);
  out["runs"] = JsonWriter::of(runs);
  return fileText(kSuiteFormat, out);
}

bool isSuiteJson(std::string_view text) { return hasFormat(text, kSuiteFormat); }

Result<Suite> suiteFromJson(std::string_view text, const std::string& name) {
  VIADUCT_TRY(const Json json, parseFile(text, name, kReadingSuite, kSuiteFormat));
  JsonReader from(json);
  Suite suite;
  std::vector<NamedRun> runs;
  describe(from, suite);
  from.need("runs", runs);
  VIADUCT_CHECK(from.status(kReadingSuite, name));
  VIADUCT_CHECK(takeRuns(std::move(runs), suite, name));
  return suite;
}

}  // namespace viaduct::measure
