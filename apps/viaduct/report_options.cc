#include <CLI/CLI.hpp>

#include "viaduct/commands.h"

namespace viaduct::app {
namespace {

constexpr auto kReportAbout =
    "Make one page of result files: charts of bandwidth, latency, CPU cost and scaling, a table\n"
    "below each, every row with its path and verdict, machines and settings.\n\n"
    "The page is one file of HTML that needs no network and no script. Files of `viaduct bench "
    "--json`\n"
    "and output of nixlbench, also out of the logs of pods, may stand side by side.";
constexpr auto kReportMore =
    "  viaduct report tcp.json local.json -o report.html\n"
    "  kubectl logs bench-0 | viaduct report ours.json - -o - > report.html\n\n"
    "Ends with 0; with 1 when the page cannot be written; with 2 for a wrong command line or a "
    "file\n"
    "that cannot be read.";

}  // namespace

void declareReport(CLI::App& app, ReportCommand& command) {
  CLI::App& report = *app.add_subcommand("report", kReportAbout);
  report.footer(kReportMore);
  report.add_option("FILES", command.files, "Result files; - is the standard input")->required();
  report.add_option("-o,--output", command.out, "The page; - is the standard output")
      ->required()
      ->type_name("FILE");
  report.add_option("--title", command.title, "Heading of the page [backends and hosts]")
      ->type_name("TEXT");
}

}  // namespace viaduct::app
