#include <CLI/CLI.hpp>
#include <string>

#include "viaduct/bench_values.h"
#include "viaduct/commands.h"

namespace viaduct::app {
namespace {

constexpr auto kCompareAbout =
    "Compare two results of `viaduct bench --json`: how much faster is B than A?\n\n"
    "For each row of the same backend, op, scheme, block size and batch: the ratio of B to A, its\n"
    "95 % interval, the effect size (-1: every part of B is slower than every part of A, 1: "
    "faster),\n"
    "and the ratios of the latencies. Results of other machines or settings are refused, and what\n"
    "differs is named, unless that is meant.";
constexpr auto kCompareMore =
    "The parts of one run share its luck. Runs that alternate, four or more of each, show what is\n"
    "left of a difference: viaduct compare --before a1 a2 a3 a4 --after b1 b2 b3 b4\n\n"
    "Ends with 0; with 1 when a row is slower than --fail-if-slower allows, with 95 % confidence, "
    "or\n"
    "cannot be used although it could before; with 2 for a wrong command line, files that cannot "
    "be\n"
    "read, and results that may not be compared.";

double percent(const std::string& text) {
  double share = 0;
  const auto read = intoPercent(text, share);
  if (!read)
    throw CLI::ValidationError("--fail-if-slower",
                               read.error().detail + ": " + read.error().remedy);
  return share;
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
  compare
      .add_option_function<std::string>(
          "--fail-if-slower",
          [&command](const std::string& text) { command.options.slower = percent(text); },
          "End with 1 when a row of B is slower by more than this, for sure")
      ->type_name("N%");
  compare.add_flag("--across-machines", command.options.across_machines,
                   "Compare although the machines differ");
  compare.add_flag("--across-settings", command.options.across_settings,
                   "Compare although settings differ; also rows of different backends");
  compare.add_flag("--json", command.json, "Print JSON");
}

}  // namespace viaduct::app
