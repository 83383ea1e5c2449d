#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/file_error.h"
#include "base/replaced_file.h"
#include "measure/report/page.h"
#include "measure/report/validate.h"
#include "measure/result/result_files.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

Status writePage(const std::string& page, const std::string& file) {
  constexpr const char* kOperation = "write the page";
  if (file != "-") {
    VIADUCT_TRY(const auto target, base::ReplacedFile::open(kOperation, file));
    return target.write(page);
  }
  if (std::fwrite(page.data(), 1, page.size(), stdout) == page.size() && std::fflush(stdout) == 0)
    return Ok{};
  return base::fileError(kOperation, errno, "standard output");
}

struct AllFiles {
  std::vector<measure::Source> sources = {};
  std::vector<measure::SuiteSource> suites = {};
};
Result<AllFiles> readAll(const std::vector<std::string>& files) {
  AllFiles out;
  std::vector<std::vector<measure::Report>> reports(files.size());
  const std::vector<std::string> names = measure::namesOf(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    VIADUCT_TRY(const std::string text, measure::contentOfFile(files[i]));
    const std::string name = measure::nameOfFile(files[i]);
    if (measure::isSuiteJson(text)) {
      VIADUCT_TRY(measure::Suite suite, measure::suiteFromJson(text, name));
      VIADUCT_CHECK(measure::checkResult(suite, name));
      out.suites.push_back({names[i], std::move(suite)});
    } else {
      VIADUCT_TRY(reports[i], measure::reportsFrom(text, name));
      VIADUCT_CHECK(measure::checkResult(reports[i], name));
    }
  }
  out.sources = measure::sourcesOf(files, std::move(reports));
  for (const measure::SuiteSource& suite : out.suites)
    for (measure::Source& source : measure::sourcesOf(suite))
      out.sources.push_back(std::move(source));
  return out;
}

struct ReportCommand {
  std::vector<std::string> files = {};
  std::string out = {};
  std::string title = {};
};

int runReport(const ReportCommand& command) {
  const auto files = readAll(command.files);
  if (!files) return fail(files.error().text(), kExitUsage);
  const auto written =
      writePage(measure::reportPage(files->sources, VIADUCT_VERSION, files->suites, command.title),
                command.out);
  if (!written) return fail(written.error().text(), kExitFailed);
  return kExitOk;
}

using ReportFlag = Flag<ReportCommand>;
constexpr std::array kReportFlags{
    ReportFlag{"FILES", "FILES ...", "required", "result files; - reads standard input",
               add<intoOneText, &ReportCommand::files>},
    ReportFlag{"output", "FILE", "required", "file for the page; - writes to standard output",
               set<intoText, &ReportCommand::out>},
    ReportFlag{"title", "TEXT", "backends and hosts", "heading of the page",
               set<intoText, &ReportCommand::title>},
};
constexpr auto kReportAbout =
    "Make one HTML page of result files.\n\n"
    "The page has charts of bandwidth, latency, CPU cost and scaling, each above a table of its "
    "rows. Each row has its path and verdict. Tables list the machines and settings. The page "
    "needs no network and no script.\n\n"
    "Inputs are the files that `viaduct bench --json`, `viaduct pipeline --json` and the other "
    "measurements write, and nixlbench's output, also within pod logs.";
constexpr auto kReportMore =
    "Exit codes: 0 if the page was written; 1 if it cannot be written; 2 if the command line is "
    "wrong or a file cannot be read.\n\n"
    "Examples:\n"
    "  viaduct report tcp.json local.json -o report.html\n"
    "  kubectl logs bench-0 | viaduct report ours.json - -o - > report.html";

}  // namespace

Command reportCommand() {
  return commandOf<ReportCommand>({.name = "viaduct report",
                                   .about = kReportAbout,
                                   .more = kReportMore,
                                   .flags = kReportFlags,
                                   .run = runReport});
}

}  // namespace viaduct::app
