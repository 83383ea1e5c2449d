#include <CLI/CLI.hpp>

#include "viaduct/commands.h"

namespace viaduct::app {
namespace {

constexpr auto kReportAbout =
    "Make one HTML page of result files.\n\n"
    "The page has charts of bandwidth, latency, CPU cost and scaling, each above a table of its "
    "rows. Each row has its path and verdict. Tables list the machines and settings. The page "
    "needs no network and no script.\n\n"
    "Inputs are files of `viaduct bench --json` or `viaduct suite --json`, and nixlbench's output, "
    "also within pod logs.";
constexpr auto kReportMore =
    "Exit codes: 0 if the page was written; 1 if it cannot be written; 2 if the command line is "
    "wrong or a file cannot be read.\n\n"
    "Examples:\n"
    "  viaduct report tcp.json local.json -o report.html\n"
    "  kubectl logs bench-0 | viaduct report ours.json - -o - > report.html";

}  // namespace

void declareReport(CLI::App& app, ReportCommand& command) {
  CLI::App& report = *app.add_subcommand("report", kReportAbout);
  report.footer(kReportMore);
  report.add_option("FILES", command.files, "Result files; - reads standard input")->required();
  report.add_option("-o,--output", command.out, "File for the page; - writes to standard output")
      ->required()
      ->type_name("FILE");
  report.add_option("--title", command.title, "Heading of the page [backends and hosts]")
      ->type_name("TEXT");
}

}  // namespace viaduct::app
