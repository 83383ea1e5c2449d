#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "viaduct/bench_values.h"
#include "viaduct/commands.h"

namespace viaduct::app {
namespace {

constexpr auto kCompareAbout =
    "Compare results of `viaduct bench --json`: how much faster is B than A?\n\n"
    "For each row of the same backend, op, scheme, block size and batch: the ratio of B to A, its\n"
    "95 % interval, the effect size (-1: every run of B is slower than every run of A, 1: "
    "faster),\n"
    "and the ratios of the latencies. Results of other machines or settings are refused, and what\n"
    "differs is named, unless that is meant.";
constexpr auto kCompareMore =
    "Each side needs four runs or more, measured in turns (A, B, B, A and so on):\n"
    "  viaduct compare --before a1 a2 a3 a4 --after b1 b2 b3 b4\n"
    "With fewer runs the ratios are shown, and no row is called faster or slower.\n\n"
    "Ends with 0; with 1 when a row is slower than --fail-if-slower allows, with 95 % confidence, "
    "or\n"
    "cannot be used although it could before; with 2 for a wrong command line, files that cannot "
    "be\n"
    "read, and results that may not be compared; with 4 for fewer than four runs of a side, or "
    "runs\nthat did not take turns.";

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
  auto* files = compare.add_option("FILES", command.files, "A.json and B.json")->expected(2);
  auto* before = compare.add_option("--before", command.before, "Several files for A")
                     ->type_name("FILE ...")
                     ->excludes(files);
  auto* after = compare.add_option("--after", command.after, "Several files for B")
                    ->type_name("FILE ...")
                    ->excludes(files);
  before->needs(after);
  after->needs(before);
  addPercent(
      compare, "--fail-if-slower", [&command](double share) { command.options.slower = share; },
      "End with 1 when a row of B is slower by more than this, for sure");
  addPercent(
      compare, "--least-effect", [&command](double share) { command.options.least_effect = share; },
      "Call no row faster or slower for less than this [1%]");
  compare.add_flag("--across-machines", command.options.across_machines,
                   "Compare although the machines differ");
  compare.add_flag("--across-settings", command.options.across_settings,
                   "Compare although settings differ; also rows of different backends");
  compare.add_flag("--across-time", command.options.across_time,
                   "Compare although the runs did not take turns");
  compare.add_flag("--json", command.json, "Print JSON");
}

}  // namespace viaduct::app
