#include <cmath>

#include "measure/result/report_json.h"
#include "measure/result/row_json.h"
#include "measure/suite/answers.h"
#include "measure/suite/suite.h"

namespace viaduct::measure {
namespace {

constexpr FormatName kFormat{.front = "viaduct-suite/", .version = 1, .writer = "viaduct suite"};
constexpr const char* kReading = "read suite file";

// --- writing

Json asJson(const SuiteTest& test) {
  Json out{{"name", test.name}, {"settings", asJson(test.settings)}, {"sizes", test.sizes}};
  if (!test.expected.empty()) out["expected"] = test.expected;
  if (!test.absent.empty()) out["not_measured"] = test.absent;
  if (!test.shows.empty()) out["shows"] = test.shows;
  return out;
}

Json asJson(const Suite& suite, const SuiteRun& run) {
  Json rows = Json::array();
  for (const Row& row : run.rows) rows.push_back(asJson(row));
  return {{"round", run.round}, {"test", suite.tests[run.test].name}, {"rows", std::move(rows)}};
}

void put(Json& out, const char* key, const std::optional<double>& figure) {
  if (figure && std::isfinite(*figure)) out[key] = *figure;
}

void put(Json& out, const char* key, const std::optional<Improvement>& improvement) {
  if (!improvement || !std::isfinite(improvement->value)) return;
  out[key] = Json{{"value", improvement->value}};
  if (improvement->interval)
    out[key]["interval_95"] = {improvement->interval->low, improvement->interval->high};
}

Json asJson(const SuiteTest& test, const SuiteCell& cell, bool baseline) {
  const SuiteFigures& f = cell.figures;
  Json out{{"test", test.name}, {"size", cell.size}};
  put(out, "gb_per_s", f.gb_per_s);
  put(out, "p50_us", f.p50_us);
  put(out, "p95_us", f.p95_us);
  put(out, "p99_us", f.p99_us);
  put(out, "cores_busy", f.cores_busy);
  put(out, "completions_per_s", f.completions_per_s);
  if (!f.rails.empty()) out["rails"] = f.rails;
  if (!baseline) {
    put(out, "rate_improvement", cell.rate);
    put(out, "latency_improvement", cell.latency);
    out["judged_by"] = judgedByName(judgedBy(cell.size));
    out["answer"] = answerName(cell.answer);
  }
  if (!cell.note.empty()) out["note"] = cell.note;
  return out;
}

Json resultsOf(const Suite& suite) {
  Json out = Json::array();
  for (const SuiteAnswers& answers : answersOf(suite))
    for (const SuiteCell& cell : answers.cells)
      out.push_back(asJson(suite.tests[answers.test], cell, answers.test == 0));
  return out;
}

Json conclusionOf(const Suite& suite) {
  Json out = Json::object();
  for (const SuiteAnswers& answers : answersOf(suite))
    if (!answers.text.empty()) out[suite.tests[answers.test].name] = answers.text;
  return out;
}

}  // namespace

// --- reading: JsonReader finds these by their arguments, hence outside of the nameless namespace

struct SuiteSettings {
  OptionList run, agent;
};
struct NamedRun {
  SuiteRun run;
  std::string test;
};

void read(JsonReader& from, SuiteSettings& settings) {
  read(from, settings.run);
  from.may("agent", settings.agent);
}

void read(JsonReader& from, SuiteTest& test) {
  OptionList settings;
  from.need("name", test.name);
  from.need("settings", settings);
  from.need("sizes", test.sizes);
  from.may("expected", test.expected);
  from.may("not_measured", test.absent);
  from.may("shows", test.shows);
  test.settings = std::move(settings.list);
}

void read(JsonReader& from, NamedRun& run) {
  from.need("round", run.run.round);
  from.need("test", run.test);
  from.need("rows", run.run.rows);
}

namespace {

// What the fields alone do not say.
Status takeRuns(std::vector<NamedRun> runs, Suite& into, const std::string& file) {
  const auto wrong = [&](std::string detail) {
    return Error{
        .code = Code::kProtocol, .operation = kReading, .detail = std::move(detail), .file = file};
  };
  if (into.tests.empty()) return wrong("tests: there are none");
  for (NamedRun& run : runs) {
    std::size_t test = 0;
    while (test < into.tests.size() && into.tests[test].name != run.test) ++test;
    if (test == into.tests.size()) return wrong("runs: \"" + run.test + "\" is none of its tests");
    if (run.run.round >= into.rounds_done)
      return wrong("runs: a run belongs to an unfinished round");
    run.run.test = test;
    into.runs.push_back(std::move(run.run));
  }
  return Ok{};
}

}  // namespace

std::string toJson(const Suite& suite) {
  Json tests = Json::array(), runs = Json::array();
  for (const SuiteTest& test : suite.tests) tests.push_back(asJson(test));
  for (const SuiteRun& run : suite.runs) runs.push_back(asJson(suite, run));
  Json settings = asJson(suite.settings);
  settings["agent"] = asJson(suite.agent);
  return dumpJson({{"format", textOf(kFormat)},
                   {"version", suite.version},
                   {"started", suite.started},
                   {"end", suite.end},
                   {"command", suite.command},
                   {"environment", asJson(suite.environment)},
                   {"settings", std::move(settings)},
                   {"rounds", suite.rounds},
                   {"rounds_done", suite.rounds_done},
                   {"least_effect", suite.least_effect},
                   {"tests", std::move(tests)},
                   {"conclusion", conclusionOf(suite)},
                   {"results", resultsOf(suite)},
                   {"runs", std::move(runs)}},
                  2) +
         "\n";
}

bool isSuiteJson(std::string_view text) {
  const auto json = parseJson(text);
  if (!json || !json->is_object()) return false;
  const auto at = json->find("format");
  return at != json->end() && at->is_string() && at->get<std::string>().starts_with(kFormat.front);
}

Result<Suite> suiteFromJson(std::string_view text, const std::string& name) {
  VIADUCT_TRY(const Json json, parseFile(text, name, kReading, kFormat));
  JsonReader from(json);
  Suite suite;
  from.need("version", suite.version);
  from.need("started", suite.started);
  from.need("end", suite.end);
  from.may("command", suite.command);
  from.need("environment", suite.environment);
  SuiteSettings settings;
  from.need("settings", settings);
  suite.settings = std::move(settings.run.list);
  suite.agent = std::move(settings.agent.list);
  from.need("rounds", suite.rounds);
  from.need("rounds_done", suite.rounds_done);
  from.may("least_effect", suite.least_effect);  // older files have none
  from.need("tests", suite.tests);
  std::vector<NamedRun> runs;
  from.need("runs", runs);
  VIADUCT_CHECK(from.status(kReading, name));
  VIADUCT_CHECK(takeRuns(std::move(runs), suite, name));
  return suite;
}

}  // namespace viaduct::measure
