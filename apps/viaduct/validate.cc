#include "measure/report/validate.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/result/result_files.h"
#include "measure/result/text.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

struct ValidateCommand {
  std::vector<std::string> files = {};
  bool json = false, rules = false;
};

struct CheckedFile {
  std::string name = {};
  std::string error = {};  // why it could not be read
  std::string tool = {};   // another tool's output, which has no counts
  std::size_t rows = 0;
  std::vector<measure::Contradiction> found = {};
};

Status checkSuite(const std::string& text, CheckedFile& out) {
  VIADUCT_TRY(const measure::Suite suite, measure::suiteFromJson(text, out.name));
  for (const measure::SuiteRun& run : suite.runs) out.rows += run.rows.size();
  out.found = contradictionsIn(suite);
  return Ok{};
}

Status checkReports(const std::string& text, CheckedFile& out) {
  VIADUCT_TRY(const auto reports, measure::reportsFrom(text, out.name));
  for (const measure::Report& report : reports) {
    out.rows += report.rows.size();
    if (!measure::isOurs(report)) out.tool = toolOf(report);
    for (measure::Contradiction& one : contradictionsIn(report))
      out.found.push_back(std::move(one));
  }
  return Ok{};
}

CheckedFile checkFile(const std::string& file) {
  CheckedFile out{.name = measure::nameOfFile(file)};
  const auto text = measure::contentOfFile(file);
  const Status read = !text                         ? Status(text.error())
                      : measure::isSuiteJson(*text) ? checkSuite(*text, out)
                                                    : checkReports(*text, out);
  if (!read) out.error = read.error().text();
  return out;
}

std::string verdictOf(const CheckedFile& file) {
  using measure::counted;
  if (!file.tool.empty())
    return fmt::format("output of {}, which has no counts: nothing can be computed again",
                       file.tool);
  if (file.found.empty()) return fmt::format("{}, no contradiction", counted(file.rows, "row"));
  return fmt::format("{}, {}", counted(file.rows, "row"),
                     counted(file.found.size(), "contradiction"));
}

void printText(const CheckedFile& file) {
  if (!file.error.empty()) return;
  fmt::print("{}: {}\n", file.name, verdictOf(file));
  for (const measure::Contradiction& one : file.found)
    fmt::print("  {}: {}\n", one.field, one.text);
}

base::Json jsonOf(const CheckedFile& file) {
  base::Json found = base::Json::array();
  for (const measure::Contradiction& one : file.found)
    found.push_back({{"field", one.field}, {"text", one.text}});
  base::Json out{{"file", file.name}, {"rows", file.rows}, {"contradictions", std::move(found)}};
  if (!file.error.empty()) out["error"] = file.error;
  if (!file.tool.empty()) out["tool"] = file.tool;
  return out;
}

void printRules() {
  fmt::print("| field | rule |\n|---|---|\n");
  for (const measure::ValidationRule& one : measure::validationRules())
    fmt::print("| `{}` | {} |\n", one.field, one.rule);
}

int runValidate(const ValidateCommand& command) {
  if (command.rules) {
    printRules();
    return kExitOk;
  }
  if (command.files.empty())
    return fail(badFlag("validate", "no file was named", "run viaduct validate FILE ...").text(),
                kExitUsage);
  int code = kExitOk;
  base::Json all = base::Json::array();
  for (const std::string& name : command.files) {
    const CheckedFile file = checkFile(name);
    if (command.json)
      all.push_back(jsonOf(file));
    else
      printText(file);
    if (!file.error.empty())
      code = fail(file.error, kExitUsage);
    else if (!file.found.empty() && code == kExitOk)
      code = kExitFailed;
  }
  if (command.json)
    fmt::print("{}\n",
               base::dumpJson({{"format", "viaduct-validate/1"}, {"files", std::move(all)}}, 2));
  return code;
}

using ValidateFlag = Flag<ValidateCommand>;
constexpr std::array kValidateFlags{
    ValidateFlag{"FILES", "FILES ...", "", "result files; - reads standard input",
                 add<intoOneText, &ValidateCommand::files>},
    ValidateFlag{"json", "", "", "print JSON", set<intoYesNo, &ValidateCommand::json>},
    ValidateFlag{"rules", "", "", "print the rules as a table, and read no file",
                 set<intoYesNo, &ValidateCommand::rules>},
};
constexpr auto kValidateAbout =
    "Compute the figures of result files again, and name each contradiction.\n\n"
    "A result file has the counts behind its figures: bytes and seconds of each part, times of all "
    "transfers, counters, CPU time and clocks. Each figure follows from them by a rule, and other "
    "rules compare fields that have to agree. `viaduct report` and `viaduct compare` check the "
    "same "
    "and refuse a file that contradicts itself.\n\n"
    "A file in which all fields were edited consistently has no contradiction.";
constexpr auto kValidateMore =
    "Exit codes:\n"
    "  0    no contradiction\n"
    "  1    a file contradicts itself\n"
    "  2    the command line is wrong, or a file cannot be read\n\n"
    "Examples:\n"
    "  viaduct validate result.json\n"
    "  viaduct validate --rules";

}  // namespace

Command validateCommand() {
  return commandOf<ValidateCommand>({.name = "viaduct validate",
                                     .about = kValidateAbout,
                                     .more = kValidateMore,
                                     .flags = kValidateFlags,
                                     .run = runValidate});
}

}  // namespace viaduct::app
