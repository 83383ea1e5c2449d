#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "viaduct/bench_values.h"
#include "viaduct/commands.h"

namespace viaduct::app {
namespace {

constexpr auto kCompareAbout =
    "Compare two results: how much faster is B than A?\n\n"
    "The files come from `viaduct bench --json` or nixlbench. Rows match if they have the same "
    "backend, op, scheme, block size and batch. For each pair of rows the table shows the ratio "
    "B/A of bandwidth, its 95 % interval, the effect size, and the ratios of the latencies. The "
    "effect size is -1 if every run of B is slower than every run of A, and 1 if every run is "
    "faster.\n\n"
    "Results from different machines or settings are an error that names the differences. The "
    "--across flags allow them.";
constexpr auto kCompareMore =
    "Each side needs at least four runs, in turns (A, B, B, A and so on). With fewer runs the "
    "table shows the ratios, but calls no row faster or slower.\n\n"
    "Exit codes:\n"
    "  0    the rows were compared\n"
    "  1    --fail-if-slower: a row is slower than allowed, or no longer valid\n"
    "  2    the command line is wrong, a file cannot be read,\n"
    "       or the results differ in machine or settings\n"
    "  4    fewer than four runs per side, or the runs did not take turns\n\n"
    "Examples:\n"
    "  Compare four runs of each side:\n"
    "    viaduct compare --before a1 a2 a3 a4 --after b1 b2 b3 b4\n"
    "  Fail if a row is more than 5 % slower:\n"
    "    viaduct compare --before a? --after b? --fail-if-slower 5%";

void addPercent(CLI::App& to, const char* flag, const std::function<void(double)>& take,
                const char* help) {
  const auto read = [flag, take](const std::string& text) {
    double share = 0;
    const auto fits = intoPercent(text, share);
    if (!fits) throw CLI::ValidationError(flag, fits.error().detail + ": " + fits.error().remedy);
    take(share);
  };
  to.add_option_function<std::string>(flag, read, help)->type_name("N%");
}

}  // namespace

void declareCompare(CLI::App& app, CompareCommand& command) {
  CLI::App& compare = *app.add_subcommand("compare", kCompareAbout);
  compare.footer(kCompareMore);
  auto* files =
      compare.add_option("FILES", command.files, "A.json and B.json, one run each")->expected(2);
  auto* before = compare.add_option("--before", command.before, "Files for A, one per run")
                     ->type_name("FILE")
                     ->excludes(files);
  auto* after = compare.add_option("--after", command.after, "Files for B, one per run")
                    ->type_name("FILE")
                    ->excludes(files);
  before->needs(after);
  after->needs(before);
  addPercent(
      compare, "--fail-if-slower", [&command](double share) { command.options.slower = share; },
      "Exit with 1 if a row of B is slower by more than N%, at 95 % confidence");
  addPercent(
      compare, "--least-effect", [&command](double share) { command.options.least_effect = share; },
      "Smallest effect to call faster or slower [1%]");
  compare.add_flag("--across-machines", command.options.across_machines,
                   "Allow results from different machines");
  compare.add_flag("--across-settings", command.options.across_settings,
                   "Allow different settings and backends");
  compare.add_flag("--across-time", command.options.across_time,
                   "Allow runs that did not take turns");
  compare.add_flag("--json", command.json, "Print JSON");
}

}  // namespace viaduct::app
