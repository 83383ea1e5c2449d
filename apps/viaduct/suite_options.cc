#include "viaduct/suite_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "measure/suite/suite.h"
#include "viaduct/against_settings.h"
#include "viaduct/bench_options.h"
#include "viaduct/bench_values.h"
#include "viaduct/help_text.h"
#include "viaduct/suite_tests.h"

namespace viaduct::app {
namespace {

using S = SuiteOptions;
using V = std::string_view;
using SuiteFlag = Flag<SuiteOptions>;

constexpr base::Words<bool, 2> kSuiteOutputs{{{"table", false}, {"json", true}}};

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

constexpr std::array kOwn{
    SuiteFlag{"backend", "NAME", "VIADUCT_BACKENDS, or tcp", "backend to measure",
              [](V t, S& o) {
                o.backend = backendNamed(std::string(t));
                return Status(Ok{});
              }},
    SuiteFlag{"rails", "NAME,...", "chosen by the system",
              "interfaces or source addresses to use; the coalescing test needs two",
              set<intoWords, &S::rails>},
    SuiteFlag{"device_list", "NAME,...", "", "alias of rails", set<intoWords, &S::rails>},
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
              set<intoTime, &S::duration>},
    SuiteFlag{"least_effect", "N%", "1%", "smallest effect to report as helps or hurts",
              set<intoPercent, &S::least_effect>},
    SuiteFlag{"json", "FILE", "",
              "save each round in this file; the same command continues from it",
              set<intoFile, &S::json>},
    SuiteFlag{"fresh", "", "false", "ignore the rounds in the file and start again",
              set<intoYesNo, &S::fresh>},
    SuiteFlag{"output", "table|json", "table", "output format", oneOf<kSuiteOutputs, &S::as_json>},
    SuiteFlag{"help", "", "false", "print this help", set<intoYesNo, &S::help>},
};

// The flags of `viaduct bench` that have the same meaning here.
constexpr std::array<V, 33> kHandedOn{"op_type",
                                      "op",
                                      "memory",
                                      "use_hugepages",
                                      "hot",
                                      "cold",
                                      "working_set",
                                      "seed",
                                      "scheme",
                                      "mode",
                                      "num_initiator_dev",
                                      "num_target_dev",
                                      "num_threads",
                                      "pipeline_depth",
                                      "bidirectional",
                                      "warmup",
                                      "verify",
                                      "require",
                                      "link_rate",
                                      "meet",
                                      "secret",
                                      "rank",
                                      "etcd_endpoints",
                                      "etcd_user",
                                      "etcd_password",
                                      "etcd_ca",
                                      "etcd_cert",
                                      "etcd_key",
                                      "benchmark_group",
                                      "meet_timeout",
                                      "runtime_type",
                                      "asio_address",
                                      "asio_port"};

bool isHandedOn(V name) {
  return std::find(kHandedOn.begin(), kHandedOn.end(), name) != kHandedOn.end();
}

std::vector<FlagName> names() {
  std::vector<FlagName> out;
  out.reserve(kOwn.size() + kHandedOn.size());
  for (const SuiteFlag& flag : kOwn) out.push_back(nameOf(flag));
  for (const FlagName& flag : benchFlagNames())
    if (isHandedOn(flag.name)) out.push_back(flag);
  return out;
}

Status applyToSuite(const Given& one, S& options) {
  for (const SuiteFlag& flag : kOwn)
    if (flag.name == one.name) return applyFlag(flag, one, options);
  options.bench.push_back(fmt::format("--{}={}", one.name, one.text));
  return Ok{};
}

constexpr auto kAbout =
    "Finds out whether an optimisation helps. Each test differs from the baseline in one setting. "
    "The tests run in turns, round after round. For each transfer size the result says whether the "
    "setting helps, by how much, and how certain that is.\n";
constexpr auto kEnd =
    "Exit codes:\n"
    "  0    every row was measured and is valid, whether or not a setting helps\n"
    "  1    a row failed or is not valid\n"
    "  2    the command line is wrong\n"
    "  3    a worker was killed\n"
    "  130  interrupted; complete rounds are kept\n";
constexpr auto kExamples =
    "Examples:\n"
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

}  // namespace

SuiteOptionsOrProblems readSuiteOptions(std::span<const std::string> words) {
  FlagsRead read = readFlags(words, names());
  SuiteOptionsOrProblems out{.problems = std::move(read.problems)};
  for (const Given& one : read.given)
    if (auto applied = applyToSuite(one, out.options); applied)
      out.options.given[one.name] = one.text;
    else
      out.problems.push_back(std::move(applied).error());
  return out;
}

CommandPage suitePage() {
  PageSection own{.title = "Flags"}, others{.title = "As in viaduct bench"};
  for (const SuiteFlag& flag : kOwn) own.entries.push_back(entryOf(flag, '-', flag.fallback));
  for (const FlagGroup& group : benchFlags())
    for (const BenchFlag& flag : group.flags)
      if (isHandedOn(flag.name))
        others.entries.push_back(entryOf(flag, '-', defaultOf(flag, false)));
  return {.name = "viaduct suite",
          .usage = "viaduct suite [flags]",
          .summary = "Find out whether an optimisation helps.",
          .about = kAbout,
          .sections = {{.title = "Tests", .entries = optimisationEntries()},
                       std::move(own),
                       std::move(others)},
          .more = fmt::format("{}\n{}", kEnd, kExamples)};
}

}  // namespace viaduct::app
