#include "measure/report/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "measure/report/row_checks.h"
#include "measure/result/row_figures.h"
#include "measure/result/row_json.h"

namespace viaduct::measure {
namespace {

using Contradictions = std::vector<Contradiction>;

bool isSame(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return areNear(a.get<double>(), b.get<double>());
  return a == b;
}

std::string pathBelow(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// Null: the object lacks the key.
Json valueOrNull(const Json& object, const std::string& key) {
  return object.contains(key) ? object[key] : Json();
}

// Calls `differ(path, here, there)` for each value that differs. A missing value is null.
template <class Differ>
void eachDifference(const Json& a, const Json& b, const std::string& path, const Differ& differ) {
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items())
      eachDifference(value, valueOrNull(b, key), pathBelow(path, key), differ);
    for (const auto& [key, value] : b.items())
      if (!a.contains(key)) differ(pathBelow(path, key), Json(), value);
  } else if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i)
      eachDifference(a[i], b[i], fmt::format("{}[{}]", path, i), differ);
  } else if (!isSame(a, b)) {
    differ(path, a, b);
  }
}

std::string valueText(const Json& value) {
  if (value.is_null()) return "missing";
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return "there";
  return value.is_number_float() ? fmt::format("{:.6g}", value.get<double>())
                                 : base::dumpJson(value, -1);
}

void checkFigures(const Row& row, const std::string& where, Contradictions& out) {
  for (const FigureRule& rule : figureRules()) {
    Row again = row;
    rule.compute(again);
    if (again == row) continue;
    eachDifference(JsonWriter::of(row), JsonWriter::of(again), where,
                   [&](const std::string& field, const Json& here, const Json& there) {
                     out.push_back({field, fmt::format("{}, but {} follows: {}", valueText(here),
                                                       valueText(there), rule.follows)});
                   });
  }
}

void checkRow(const Row& row, const std::string& where, Contradictions& out) {
  const auto add = [&](const char* field, std::string text) {
    out.push_back({fmt::format("{}.{}", where, field), std::move(text)});
  };
  if (!row.counts) {
    if (row.iterations != 0 || row.gb_per_s)
      add("counts", "missing: the figures cannot be computed again");
    return;
  }
  if (row.run.empty()) add("run", "missing");
  checkFigures(row, where, out);
  for (const RowCheck& check : rowChecks())
    if (const auto found = check.find(row))
      add(check.fields, fmt::format("{}: {}", *found, check.rule));
}

// An option whose value each row also has. Both must agree.
struct OptionOfRow {
  const char* option;
  std::string (*value)(const Row& row);
};
std::string yesOrNo(bool yes) { return yes ? "true" : "false"; }
constexpr std::array kOptionsOfRows{
    OptionOfRow{"num_threads", [](const Row& row) { return fmt::to_string(row.threads); }},
    OptionOfRow{"pipeline_depth",
                [](const Row& row) { return fmt::to_string(row.pipeline_depth); }},
    OptionOfRow{"num_initiator_dev", [](const Row& row) { return fmt::to_string(row.initiators); }},
    OptionOfRow{"num_target_dev", [](const Row& row) { return fmt::to_string(row.targets); }},
    OptionOfRow{"bidirectional", [](const Row& row) { return yesOrNo(row.bidirectional); }},
    OptionOfRow{"latency", [](const Row& row) { return yesOrNo(row.counts->echo); }},
    OptionOfRow{"verify", [](const Row& row) { return std::string(verifiedName(row.verified)); }},
    OptionOfRow{
        "background",
        [](const Row& row) { return fmt::to_string(row.background ? row.background->size : 0); }},
};

void checkOptions(const Row& row, const std::vector<Option>& settings, const std::string& where,
                  Contradictions& out) {
  if (!row.counts) return;
  for (const OptionOfRow& one : kOptionsOfRows) {
    const std::string* const asked = valueOf(settings, one.option);
    if (asked != nullptr && *asked != one.value(row))
      out.push_back({fmt::format("settings.{}", one.option),
                     fmt::format("{}, but {} has {}", *asked, where, one.value(row))});
  }
}

// Checks the requested rate. A replayed trace sets its own rate.
void checkAskedRate(const Row& row, const std::vector<Option>& settings, const std::string& where,
                    Contradictions& out) {
  const std::string* const rate = valueOf(settings, "rate");
  if (!row.counts || !row.rate || row.rate->arrivals == "trace" || rate == nullptr) return;
  const double asked = base::numberIn<double>(*rate).value_or(0) * row.counts->streams;
  if (!areNear(asked, row.rate->asked_per_s))
    out.push_back({where + ".rate.asked_per_s", fmt::format("{}, but {} follows from settings.rate",
                                                            row.rate->asked_per_s, asked)});
}

void checkEnvironment(const Environment& environment, Contradictions& out) {
  const std::string expected = fingerprintOf(environment.members);
  if (environment.fingerprint != expected)
    out.push_back({"environment.fingerprint", fmt::format("{}, but {} follows from the members",
                                                          environment.fingerprint, expected)});
  for (std::size_t i = 0; i < environment.members.size(); ++i)
    if (environment.members[i].rank != i)
      out.push_back({fmt::format("environment.members[{}].rank", i),
                     fmt::format("{}, but its place is {}", environment.members[i].rank, i)});
}

void checkMembers(const Row& row, const Environment& environment, const std::string& where,
                  Contradictions& out) {
  if (!row.counts || row.as<MatrixRow>() != nullptr) return;  // a matrix runs each pair alone
  if (row.counts->members.size() != environment.members.size())
    out.push_back({where + ".counts.members",
                   fmt::format("{}, but the environment has {}", row.counts->members.size(),
                               environment.members.size())});
  for (const PairResult& pair : row.pairs)
    if (std::max(pair.initiator, row.targets == 0 ? 0 : pair.target) >= row.counts->members.size())
      out.push_back({where + ".pairs", "a rank that no member has"});
}

void checkSharesOfBulk(const std::vector<Row>& rows, Contradictions& out) {
  std::vector<Row> again = rows;
  addSharesOfBulk(again);
  if (again == rows) return;
  eachDifference(JsonWriter::of(rows), JsonWriter::of(again), "rows",
                 [&](const std::string& field, const Json& here, const Json& there) {
                   out.push_back({field, fmt::format("{}, but {} follows from the bulk row",
                                                     valueText(here), valueText(there))});
                 });
}

// Returns the start of a row's conclusion.
std::string conclusionStart(const Row& row) {
  std::string out = fmt::format("{}: {:.4g} GB/s", row.backend, row.gb_per_s.value_or(0));
  if (row.ceiling)
    out += fmt::format(", {:.0f} % of its ceiling ({}: {:.4g} GB/s)", row.ceiling->percent,
                       row.ceiling->name, row.ceiling->gb_per_s);
  return out;
}

void checkConclusion(const Report& report, Contradictions& out) {
  for (std::size_t i = 0; i < report.conclusion.size(); ++i) {
    const std::string& line = report.conclusion[i];
    bool about = false, fits = false;  // some row has the line's backend; some row has its figures
    for (const Row& row : report.rows) {
      about = about || (!row.backend.empty() && line.starts_with(row.backend + ": ") &&
                        line.find(" GB/s") != std::string::npos);
      fits = fits || line.starts_with(conclusionStart(row));
    }
    if (about && !fits)
      out.push_back({fmt::format("conclusion[{}]", i), "no row has these figures"});
  }
}

void checkRun(const std::vector<Row>& rows, Contradictions& out) {
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].run != rows[0].run)
      out.push_back({fmt::format("rows[{}].run", i), "another one than that of rows[0]"});
}

// A report has all rows of a pipeline once for each backend, so their number is a multiple of
// PipelineRow::rows.
void checkPipelines(const Report& report, Contradictions& out) {
  if (report.end != "complete") return;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const auto* const kind = report.rows[i].as<PipelineRow>();
    if (kind == nullptr) continue;
    const auto rows = std::ranges::count_if(report.rows, [&](const Row& row) {
      const auto* const other = row.as<PipelineRow>();
      return other != nullptr && other->pipeline == kind->pipeline;
    });
    if (kind->rows == 0 || static_cast<std::size_t>(rows) % kind->rows != 0)
      out.push_back({fmt::format("rows[{}].pipeline.rows", i),
                     fmt::format("{}, but there are {}", kind->rows, rows)});
  }
}

void checkEnd(const Report& report, Contradictions& out) {
  const bool cut =
      std::ranges::any_of(report.rows, [](const Row& row) { return row.interrupted.has_value(); });
  if (cut && report.end == "complete")
    out.push_back({"end", "complete, but a row was interrupted"});
}

Status refuse(const Contradictions& found, const std::string& file) {
  if (found.empty()) return Ok{};
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), kShown); ++i)
    text += fmt::format("{}{}: {}", i == 0 ? "" : "; ", found[i].field, found[i].text);
  if (found.size() > kShown) text += fmt::format("; and {} more", found.size() - kShown);
  return Error{.code = Code::kInvalid,
               .operation = "validate",
               .detail = "the result contradicts itself: " + text,
               .file = file,
               .cause = "the file was edited, or an older viaduct wrote it",
               .remedy = "measure again; `viaduct validate` lists all contradictions"};
}

constexpr std::array kReportRules{
    std::pair{"run", "the same in all rows of a file"},
    std::pair{"settings",
              "num_threads, pipeline_depth, num_initiator_dev, num_target_dev, "
              "bidirectional, latency, verify and background are those of each row"},
    std::pair{"rate.asked_per_s", "settings.rate x counts.streams, unless a trace has the times"},
    std::pair{"environment.fingerprint", "follows from the hosts of the members"},
    std::pair{"environment.members[]", "by rank, as many as counts.members[]"},
    std::pair{"kv.of_bulk", "block_size x batch_size / p50, as a part of the bulk row's"},
    std::pair{"pipeline.rows", "the rows of this pipeline"},
    std::pair{"conclusion[]", "the rate and the ceiling are those of a row"},
    std::pair{"end", "not complete if a row was interrupted"},
};

}  // namespace

std::vector<Contradiction> contradictionsIn(const Report& report) {
  Contradictions out;
  if (!isOurs(report)) return out;
  checkEnvironment(report.environment, out);
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const std::string where = fmt::format("rows[{}]", i);
    checkRow(report.rows[i], where, out);
    checkOptions(report.rows[i], report.settings, where, out);
    checkAskedRate(report.rows[i], report.settings, where, out);
    checkMembers(report.rows[i], report.environment, where, out);
  }
  checkRun(report.rows, out);
  checkSharesOfBulk(report.rows, out);
  checkConclusion(report, out);
  checkPipelines(report, out);
  checkEnd(report, out);
  return out;
}

std::vector<Contradiction> contradictionsIn(const Suite& suite) {
  Contradictions out;
  checkEnvironment(suite.environment, out);
  for (std::size_t i = 0; i < suite.runs.size(); ++i)
    for (std::size_t k = 0; k < suite.runs[i].rows.size(); ++k)
      checkRow(suite.runs[i].rows[k], fmt::format("runs[{}].rows[{}]", i, k), out);
  return out;
}

Status checkResult(const std::vector<Report>& reports, const std::string& file) {
  for (const Report& report : reports) VIADUCT_CHECK(refuse(contradictionsIn(report), file));
  return Ok{};
}

Status checkResult(const Suite& suite, const std::string& file) {
  return refuse(contradictionsIn(suite), file);
}

std::vector<ValidationRule> validationRules() {
  std::vector<ValidationRule> out;
  for (const FigureRule& rule : figureRules()) out.push_back({rule.figure, rule.follows});
  for (const RowCheck& check : rowChecks()) out.push_back({check.fields, check.rule});
  for (const auto& [field, rule] : kReportRules) out.push_back({field, rule});
  return out;
}

}  // namespace viaduct::measure
