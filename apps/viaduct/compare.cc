#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "base/text_table.h"
#include "measure/report/compare_output.h"
#include "measure/result/result_files.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

struct CompareCommand {
  std::vector<std::string> files = {};               // A and B
  std::vector<std::string> before = {}, after = {};  // several files for each side
  measure::CompareOptions options = {};
  bool json = false;
};

using measure::Report;

Result<std::vector<Report>> readSide(const std::vector<std::string>& files) {
  std::vector<Report> out;
  for (const std::string& file : files) {
    VIADUCT_TRY(auto reports, measure::readReports(file));
    for (Report& report : reports) out.push_back(std::move(report));
  }
  return out;
}

// Returns a text such as "a.json (viaduct 0.1.0, 2026-01-02T03:04:05Z)".
std::string describe(const std::vector<std::string>& files, const std::vector<Report>& reports) {
  const Report& first = reports.front();
  return fmt::format("{} ({}{}{})", fmt::join(files, " "), toolOf(first),
                     first.started.empty() ? "" : ", ", first.started);
}

}  // namespace

int endOf(const measure::Comparison& found, const measure::CompareOptions& options) {
  if (options.slower && found.isWorse()) return kExitFailed;
  if (found.evidence == measure::SampleEvidence::kEnough) return kExitOk;
  return fail(found.evidence == measure::SampleEvidence::kTooFewRuns
                  ? "not enough runs to tell a difference"
                  : "the runs of A and B did not take turns",
              kExitUnsure);
}

namespace {

Result<int> readAndCompare(const CompareCommand& command) {
  const bool two = command.before.empty() && command.after.empty();
  if (command.files.size() != (two ? 2 : 0) || command.before.empty() != command.after.empty())
    return badFlag("compare", "two files are needed",
                   "run viaduct compare A.json B.json, or use --before ... --after ...");
  const auto files_a = two ? std::vector{command.files[0]} : command.before;
  const auto files_b = two ? std::vector{command.files[1]} : command.after;
  VIADUCT_TRY(const auto a, readSide(files_a));
  VIADUCT_TRY(const auto b, readSide(files_b));
  VIADUCT_TRY(const auto found, measure::compare(a, b, command.options));
  const measure::ComparedFiles names{describe(files_a, a), describe(files_b, b)};
  fmt::print("{}", command.json ? measure::compareJson(found, names)
                                : measure::compareText(found, names, command.options,
                                                       base::terminalWidth()));
  std::fflush(stdout);
  return endOf(found, command.options);
}

int runCompare(const CompareCommand& command) {
  return orFail(readAndCompare(command), kExitUsage);
}

using CompareFlag = Flag<CompareCommand>;

constexpr std::array kCompareFlags{
    CompareFlag{"FILES", "FILES ...", "", "one run of each side",
                add<intoOneText, &CompareCommand::files>},
    CompareFlag{"before", "FILE ...", "", "files for A, one per run",
                add<intoOneText, &CompareCommand::before>},
    CompareFlag{"after", "FILE ...", "", "files for B, one per run",
                add<intoOneText, &CompareCommand::after>},
    CompareFlag{"fail_if_slower", "N%", "",
                "exit with 1 if a row of B is slower by more than N%, at 95 % confidence",
                set<intoPercent, &CompareCommand::options, &measure::CompareOptions::slower>},
    CompareFlag{"least_effect", "N%", "1%", "smallest effect to call faster or slower",
                set<intoPercent, &CompareCommand::options, &measure::CompareOptions::least_effect>},
    CompareFlag{
        "across_machines", "", "", "allow results from different machines",
        set<intoYesNo, &CompareCommand::options, &measure::CompareOptions::across_machines>},
    CompareFlag{
        "across_settings", "", "", "allow different settings and backends",
        set<intoYesNo, &CompareCommand::options, &measure::CompareOptions::across_settings>},
    CompareFlag{"across_time", "", "", "allow runs that did not take turns",
                set<intoYesNo, &CompareCommand::options, &measure::CompareOptions::across_time>},
    CompareFlag{"json", "", "", "print JSON", set<intoYesNo, &CompareCommand::json>},
};
constexpr auto kCompareAbout =
    "Compare two results: how much faster is B than A?\n\n"
    "The files come from --json of `viaduct bench` and other commands that measure, or from "
    "nixlbench. Rows match if they have the same backend, op, scheme, block size and batch. For "
    "each pair of rows the table shows the ratio B/A of bandwidth, its 95 % interval, the effect "
    "size, and the ratios of the latencies. The effect size is -1 if every run of B is slower than "
    "every run of A, and 1 if every run is "
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

}  // namespace

Command compareCommand() {
  return commandOf<CompareCommand>({.name = "viaduct compare",
                                    .about = kCompareAbout,
                                    .more = kCompareMore,
                                    .flags = kCompareFlags,
                                    .run = runCompare});
}

}  // namespace viaduct::app
