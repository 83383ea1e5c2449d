// A command that measures: its texts, its flags, and what it runs. Threads: the main one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "viaduct/bench_plan.h"
#include "viaduct/command.h"
#include "viaduct/flag_sheet.h"

namespace viaduct::app {

struct WorkloadTexts {
  const char *name, *about;                     // `about` begins with a summary of one line
  const char* more;                             // as in CommandPage
  void (*extend)(CommandPage& page) = nullptr;  // adds sections that are not of flags
};

// The command line of a workload, after parsing. `run` is a part of what `plan` uses.
struct ReadWorkload {
  RunOptions run = {};
  std::vector<Error> problems = {};
  std::function<PlanOrProblems(const Settings& settings)> plan = {};
};
using WorkloadReader =
    std::function<ReadWorkload(const std::vector<std::string>& words, Repeats repeats)>;

template <class Options>
struct Workload {
  WorkloadTexts texts;
  FlagSheet (*flags)(Options& into);
  // A workload of rows has a plan. Any other one runs by itself: it prints `problems` and those of
  // its plan, or measures, and returns the exit code.
  PlanOrProblems (*plan)(const Options& options, const Settings& settings) = nullptr;
  int (*run)(const Options& options, const Settings& settings,
             std::vector<Error> problems) = nullptr;
};

// Returns a workload's page. `usage` lists its arguments.
CommandPage workloadPage(const WorkloadTexts& texts, const FlagSheet& sheet);

// Measures the rows of a command line, or compares or explains them. Returns the exit code.
int runRows(const CommandPage& page, const FlagSheet& sheet, const WorkloadReader& reader,
            const CommandWords& typed);

// What to do with the words of a workload without rows: the problems, and the settings to run with.
struct Prepared {
  std::optional<int> code = {};  // the command has ended: the help was printed
  Settings settings = {};
  std::vector<Error> problems = {};
};
Prepared prepare(const CommandPage& page, const FlagSheet& sheet, RunOptions& options,
                 const CommandWords& typed);

template <class Options>
CommandPage pageOf(const Workload<Options>& workload) {
  Options options;
  return workloadPage(workload.texts, workload.flags(options));
}

template <class Options>
WorkloadReader readerOf(const Workload<Options>& workload) {
  return [&workload](const std::vector<std::string>& words, Repeats repeats) {
    const auto options = std::make_shared<Options>();
    options->command = workload.texts.name;
    std::vector<Error> problems = workload.flags(*options).read(words, repeats, *options);
    return ReadWorkload{*options, std::move(problems),
                        [plan = workload.plan, options](const Settings& settings) {
                          return plan(*options, settings);
                        }};
  };
}

// `workload` has to outlive the command.
template <class Options>
int runWorkload(const Workload<Options>& workload, const CommandWords& words) {
  Options options;
  options.command = workload.texts.name;
  const FlagSheet sheet = workload.flags(options);
  const CommandPage page = workloadPage(workload.texts, sheet);
  if (workload.plan != nullptr) return runRows(page, sheet, readerOf(workload), words);
  Prepared prepared = prepare(page, sheet, options, words);
  return prepared.code ? *prepared.code
                       : workload.run(options, prepared.settings, std::move(prepared.problems));
}

template <class Options>
Command commandOf(const Workload<Options>& workload) {
  return {pageOf(workload),
          [&workload](const CommandWords& words) { return runWorkload(workload, words); }};
}

}  // namespace viaduct::app
