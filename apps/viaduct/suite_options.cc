#include "viaduct/suite_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "measure/report/suite.h"
#include "viaduct/against_settings.h"
#include "viaduct/command_line.h"
#include "viaduct/run_flags.h"
#include "viaduct/suite_tests.h"
#include "viaduct/workload.h"

namespace viaduct::app {
namespace {

using S = SuiteOptions;
using V = std::string_view;
using SuiteFlag = Flag<SuiteOptions>;

bool isName(V name) {
  return !name.empty() && name.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == V::npos;
}

// Parses "NAME: VIADUCT_SOCKETS=4 ...".
Status intoAlso(V text, S& into) {
  constexpr auto kForm = "--also 'four-sockets: VIADUCT_SOCKETS=4'";
  const auto colon = text.find(':');
  if (colon == V::npos || !isName(text.substr(0, colon)))
    return wrongValue(fmt::format("\"{}\" does not begin with a name and a colon", text), kForm);
  AddedTest test{.name = std::string(text.substr(0, colon))};
  VIADUCT_TRY(const auto words, splitWords(text.substr(colon + 1)));
  for (const std::string& word : words) {
    if (!isAssignment(word))
      return wrongValue(fmt::format("\"{}\" is not an assignment", word), kForm);
    const auto fits = checkVariable(word);
    if (!fits)
      return wrongValue(fmt::format("{}: {}", fits.error().operation, fits.error().detail),
                        fits.error().remedy);
    const auto equals = word.find('=');
    test.settings.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  if (test.settings.empty()) return wrongValue("the test sets nothing", kForm);
  into.also.push_back(std::move(test));
  return Ok{};
}

constexpr std::array kSuiteFlags{
    SuiteFlag{"backend", "NAME", "VIADUCT_BACKENDS, or tcp", "backend to measure",
              set<intoWords, &S::backends>},
    SuiteFlag{"rails", "NAME,...", "chosen by the system",
              "interfaces or source addresses to use; the coalescing test needs two",
              set<intoWords, &S::device_list>},
    SuiteFlag{"tests", "NAME,...", "all",
              "tests to run; the baseline and every --also test always run",
              set<intoWords, &S::tests>},
    SuiteFlag{"also", "'NAME: SETTINGS' ...", "",
              "add a test with VIADUCT_* assignments on top of the baseline", intoAlso},
    SuiteFlag{"sizes", "SIZE,...", "each test's own",
              "transfer sizes of all tests: 64K, 65536, 1MiB", set<intoSizes, &S::sizes>},
    SuiteFlag{"block", "SIZE", "the whole transfer",
              "divide larger transfers into blocks of this size", set<intoSize, &S::block>},
    SuiteFlag{"rounds", "N", "5", "runs of each test, at least 4",
              count<measure::kFewestRounds, &S::rounds>},
    SuiteFlag{"duration", "TIME", "200ms", "time of each row in each round",
              set<intoTime, &S::spec, &measure::Spec::duration>},
    SuiteFlag{"least_effect", "N%", "1%", "smallest effect to report as helps or hurts",
              set<intoPercent, &S::against, &AgainstOptions::least_effect>},
    SuiteFlag{"json", "FILE", "",
              "save each round in this file; the same command continues from it",
              set<intoFile, &S::out, &OutputOptions::json>},
    SuiteFlag{"junit", "FILE", "", "also write each test at each size as a test of a JUnit file",
              set<intoFile, &S::against, &AgainstOptions::junit>},
    SuiteFlag{"fresh", "", "false", "ignore the rounds in the file and start again",
              set<intoYesNo, &S::fresh>},
};
constexpr std::array kSuiteOutput{outputFlag<kTableOrJson>("table|json")};

FlagSheet suiteSheet(SuiteOptions& o) {
  constexpr auto kAsInBench = "As in viaduct bench";
  FlagSheet out;
  out.add<SuiteOptions>("Flags", kSuiteFlags, o)
      .add<RunOptions>("Flags", kSuiteOutput, o)
      .add("Flags", runFlags(), o, {"config_file"})
      .addHelp("Flags")
      .add(kAsInBench, runFlags(), o,
           {"op", "memory", "use_hugepages", "cold", "working_set", "seed"})
      .add(kAsInBench, pairFlags(), o, {"scheme", "num_initiator_dev", "num_target_dev"})
      .add(kAsInBench, runFlags(), o,
           {"mode", "num_threads", "pipeline_depth", "bidirectional", "warmup", "verify", "require",
            "link_rate", "meet", "secret", "rank", "benchmark_group", "meet_timeout"});
  return out;
}

constexpr auto kSuiteAbout =
    "Find out whether an optimisation helps.\n\n"
    "Each test differs from the baseline in one setting. "
    "The tests run in turns, round after round. For each transfer size the result says whether the "
    "setting helps, by how much, and how certain that is.\n";
constexpr auto kSuiteMore =
    "Exit codes:\n"
    "  0    every row was measured and is valid, whether or not a setting helps\n"
    "  1    a row failed or is not valid\n"
    "  2    the command line is wrong\n"
    "  3    a worker was killed\n"
    "  130  interrupted; complete rounds are kept\n";
constexpr auto kSuiteExamples =
    "  Test all optimisations of libfabric's best provider on this machine:\n"
    "    viaduct suite --backend ofi\n"
    "  Save each round, so that the same command continues after Ctrl-C:\n"
    "    viaduct suite --json suite.json\n"
    "  Test one optimisation over several rails:\n"
    "    viaduct suite --backend ofi --rails rail1,rail2 --tests coalescing\n"
    "  Move each transfer as 1,024 blocks:\n"
    "    viaduct suite --backend ofi --tests doorbell --sizes 4M --block 4K\n"
    "  Test a setting of your own:\n"
    "    viaduct suite --also 'four: VIADUCT_SOCKETS=4' --sizes 64K,1M\n"
    "  Measure two hosts (on the other host: --rank 1):\n"
    "    viaduct suite --meet node0:7000 --secret WORD --rank 0 --json suite.json\n"
    "  Make a page of the results:\n"
    "    viaduct report suite.json -o suite.html\n";

void addTests(CommandPage& page) {
  page.sections.insert(page.sections.begin(), {.title = "Tests", .entries = optimisationEntries()});
}

constexpr Workload<SuiteOptions> kSuite{"viaduct suite", kSuiteAbout, kSuiteExamples, suiteSheet,
                                        nullptr,         runSuite,    kSuiteMore,     addTests};

}  // namespace

Command suiteCommand() { return commandOf(kSuite); }

}  // namespace viaduct::app
