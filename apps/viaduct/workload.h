// A command that measures: its texts, its flags, and what it runs. Threads: the main one.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "viaduct/bench_plan.h"
#include "viaduct/command.h"

namespace viaduct::app {

// The command line of a workload of rows, after parsing. `run` is a part of what `plan` uses.
struct ReadWorkload {
  RunOptions run = {};
  SheetRead words = {};
  std::function<PlanOrProblems(const Settings& settings)> plan = {};
};
using WorkloadReader =
    std::function<ReadWorkload(const std::vector<std::string>& words, Repeats repeats)>;

template <class Options>
struct Workload {
  const char *name, *about, *examples;  // `about` begins with a summary of one line
  FlagSheet (*flags)(Options& into);
  // A workload of rows has a plan. Any other one runs by itself: it prints `problems` and those of
  // its plan, or measures, and returns the exit code.
  PlanOrProblems (*plan)(const Options& options, const Settings& settings) = nullptr;
  int (*run)(const Options& options, const Settings& settings,
             std::vector<Error> problems) = nullptr;
  const char* more = "Exit codes are those of `viaduct bench`.\n";  // as in CommandPage
  void (*extend)(CommandPage& page) = nullptr;  // adds sections beside those of flags
};
// How flags are written, and the exit codes of commands with rows.
inline constexpr auto kSpelling =
    "Write a flag as --name value, --name=value or -name value, with dashes or underscores. A flag "
    "without a value is --name or --noname. Sizes: 65536, 64K, 1MiB, 1MB (10^6). Times: 2s, 500ms; "
    "a bare number is seconds.\n\n"
    "VIADUCT_* variables configure the agents: see `viaduct settings`. ";
inline constexpr auto kExitCodes =
    "Exit codes:\n"
    "  0    every row was measured and is valid\n"
    "  1    a row failed or is not valid, or B is slower than --fail-if-slower allows\n"
    "  2    the command line is wrong\n"
    "  3    a worker was killed; rows measured before are kept\n"
    "  4    the comparison has too few runs to show a difference\n"
    "  130  interrupted; rows measured before are kept\n";

// Records the flags in the options.
void record(const FlagSheet& sheet, const SheetRead& read, RunOptions& options);
// Reads the flags into the options, and records them there.
SheetRead readInto(const FlagSheet& sheet, const std::vector<std::string>& words, Repeats repeats,
                   RunOptions& options);

// Measures the rows of a command line, or compares or explains them. Returns the exit code.
int runRows(const std::function<CommandPage()>& page, const FlagSheet& sheet,
            const WorkloadReader& reader, const CommandWords& typed);
// The result of reading the command line of a workload that has no plan.
struct Prepared {
  std::optional<int> code = {};  // the command has ended: the help was printed
  Settings settings = {};
  std::vector<Error> problems = {};
};
Prepared prepare(const std::function<CommandPage()>& page, const FlagSheet& sheet,
                 RunOptions& options, const CommandWords& typed);

template <class Options>
CommandPage pageOf(const Workload<Options>& workload) {
  Options options;
  CommandPage page = pageOf(workload.name, workload.about,
                            fmt::format("{}\nExamples:\n{}", workload.more, workload.examples),
                            workload.flags(options));
  if (workload.extend != nullptr) workload.extend(page);
  return page;
}

template <class Options>
WorkloadReader readerOf(const Workload<Options>& workload) {
  return [&workload](const std::vector<std::string>& words, Repeats repeats) {
    const auto options = std::make_shared<Options>();
    options->command = workload.name;
    SheetRead read = readInto(workload.flags(*options), words, repeats, *options);
    return ReadWorkload{*options, std::move(read),
                        [plan = workload.plan, options](const Settings& settings) {
                          return plan(*options, settings);
                        }};
  };
}

template <class Options>
int runWorkload(const Workload<Options>& workload, const CommandWords& words) {
  const auto page = [&workload] { return pageOf(workload); };
  Options options;
  options.command = workload.name;
  const FlagSheet sheet = workload.flags(options);
  if (workload.plan != nullptr) return runRows(page, sheet, readerOf(workload), words);
  Prepared prepared = prepare(page, sheet, options, words);
  return prepared.code ? *prepared.code
                       : workload.run(options, prepared.settings, std::move(prepared.problems));
}

// `workload` has to outlive the command.
template <class Options>
Command commandOf(const Workload<Options>& workload) {
  return {workload.name, [&workload] { return pageOf(workload); },
          [&workload](const CommandWords& words) { return runWorkload(workload, words); }};
}

}  // namespace viaduct::app
