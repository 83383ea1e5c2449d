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
#include "viaduct/suite_tests.h"

namespace viaduct::app {
namespace {

using O = SuiteOptions;
using V = std::string_view;
using SuiteFlag = Flag<SuiteOptions>;

constexpr std::array<std::pair<V, bool>, 2> kOutputs{{{"table", false}, {"json", true}}};

bool isName(V name) {
  return !name.empty() && name.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == V::npos;
}

// "NAME: VIADUCT_SOCKETS=4 ..."
Status intoAlso(V text, O& into) {
  constexpr auto kForm = "--also 'four-sockets: VIADUCT_SOCKETS=4'";
  const auto colon = text.find(':');
  if (colon == V::npos || !isName(text.substr(0, colon)))
    return wrongValue(fmt::format("\"{}\" does not begin with a name and a colon", text), kForm);
  AddedTest test{.name = std::string(text.substr(0, colon))};
  VIADUCT_TRY(const auto words, splitWords(text.substr(colon + 1)));
  for (const std::string& word : words) {
    if (!isAssignment(word)) return wrongValue(fmt::format("\"{}\" sets nothing", word), kForm);
    const auto fits = checkVariable(word);
    if (!fits)
      return wrongValue(fmt::format("{}: {}", fits.error().operation, fits.error().detail),
                        fits.error().remedy);
    const auto equals = word.find('=');
    test.settings.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  if (test.settings.empty()) return wrongValue("it sets nothing", kForm);
  into.also.push_back(std::move(test));
  return Ok{};
}

constexpr std::array kOwn{
    SuiteFlag{"backend", "NAME", "VIADUCT_BACKENDS, or tcp", "the backend to measure with",
              [](V t, O& o) {
                o.backend = backendNamed(std::string(t));
                return Status(Ok{});
              }},
    SuiteFlag{"rails", "NAME,...", "what the system chooses",
              "interfaces or source addresses to use: coalescing takes two or more",
              [](V t, O& o) { return intoWords(t, o.rails); }},
    SuiteFlag{"device_list", "NAME,...", "", "the same as --rails",
              [](V t, O& o) { return intoWords(t, o.rails); }},
    SuiteFlag{"tests", "NAME,...", "all",
              "some of the tests; the baseline, and what --also adds, always are",
              [](V t, O& o) { return intoWords(t, o.tests); }},
    SuiteFlag{"also", "'NAME: SETTINGS'", "",
              "one more test, with VIADUCT_* assignments on top of the baseline; may be repeated",
              intoAlso},
    SuiteFlag{"sizes", "SIZE,...", "each test's own",
              "of transfers, for all tests: 64K, 65536, 1MiB",
              [](V t, O& o) { return intoSizes(t, o.sizes); }},
    SuiteFlag{"block", "SIZE", "the whole transfer", "cut larger transfers into blocks of this",
              [](V t, O& o) { return intoSize(t, o.block); }},
    SuiteFlag{"rounds", "N", "5", "how often each test has its turn; at least 4",
              [](V t, O& o) { return intoCount(t, measure::kFewestRounds, o.rounds); }},
    SuiteFlag{"duration", "TIME", "200ms", "time each row of each round for so long",
              [](V t, O& o) { return intoTime(t, o.duration); }},
    SuiteFlag{"least_effect", "N%", "1%", "say helps or hurts of no effect smaller than this",
              [](V t, O& o) { return intoPercent(t, o.least_effect); }},
    SuiteFlag{"json", "FILE", "",
              "keep every round in this file; the same command goes on where it was",
              [](V t, O& o) { return intoFile(t, o.json); }},
    SuiteFlag{"fresh", "", "false", "start anew, whatever rounds the file has",
              [](V t, O& o) { return intoYesNo(t, o.fresh); }},
    SuiteFlag{"output", "table|json", "table", "what is printed",
              [](V t, O& o) { return intoOneOf(t, kOutputs, o.as_json); }},
    SuiteFlag{"help", "", "false", "print this", [](V t, O& o) { return intoYesNo(t, o.help); }},
};

// Of `viaduct bench`, with the same meaning.
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
  for (const SuiteFlag& flag : kOwn) out.push_back({flag.name, flag.form.empty()});
  for (const FlagName& flag : benchFlagNames())
    if (isHandedOn(flag.name)) out.push_back(flag);
  return out;
}

Status apply(const Given& one, O& options) {
  for (const SuiteFlag& flag : kOwn) {
    if (flag.name != one.name) continue;
    auto applied = flag.apply(one.text, options);
    if (!applied) {
      Error error = std::move(applied).error();
      error.operation = one.from;
      return error;
    }
    return Ok{};
  }
  options.bench.push_back(fmt::format("--{}={}", one.name, one.text));
  return Ok{};
}

std::string spelled(V name, V form) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return fmt::format("--{}{}{}", out, form.empty() ? "" : " ", form);
}

template <class Options>
std::string lineOf(const Flag<Options>& flag) {
  return fmt::format(
      "  {:<36} {}{}\n", spelled(flag.name, flag.form), flag.help,
      flag.fallback.empty() || flag.form.empty() ? "" : fmt::format(" [{}]", flag.fallback));
}

constexpr auto kAbout =
    "Does this optimisation help? Measures tests that differ in one setting in turns, round after\n"
    "round, and says of each size whether it helps, by how much, and how sure that is.\n";
constexpr auto kExamples =
    "  viaduct suite --backend ofi                            # here, over libfabric's best "
    "provider\n"
    "  viaduct suite --json suite.json                        # Ctrl-C, and go on with the same "
    "words\n"
    "  viaduct suite --backend ofi --rails rail1,rail2,rail3,rail4 --tests coalescing\n"
    "  viaduct suite --backend ofi --tests doorbell --sizes 4M --block 4K   # 1,024 blocks each\n"
    "  viaduct suite --also 'four: VIADUCT_SOCKETS=4' --sizes 64K,1M\n"
    "  viaduct suite --meet node0:7000 --rank 0 --json suite.json   # on node0; on node1 --rank 1\n"
    "  viaduct report suite.json -o suite.html\n";
constexpr auto kEnd =
    "Ends with 0 when all was measured and is believed, 1 when something is not, 2 for a wrong\n"
    "command line, 3 when a worker was killed, 130 when interrupted; whole rounds are kept.\n"
    "What helps is no matter of the exit code.\n";

}  // namespace

SuiteOptionsOrProblems readSuiteOptions(std::span<const std::string> words) {
  FlagsRead read = readFlags(words, names());
  SuiteOptionsOrProblems out{.problems = std::move(read.problems)};
  for (const Given& one : read.given)
    if (auto applied = apply(one, out.options); applied)
      out.options.given[one.name] = one.text;
    else
      out.problems.push_back(std::move(applied).error());
  return out;
}

std::string suiteHelp() {
  std::string out = fmt::format("usage: viaduct suite [flags]\n\n{}\nTests:\n", kAbout);
  out += optimisationsHelp() + "\nFlags:\n";
  for (const SuiteFlag& flag : kOwn) out += lineOf(flag);
  out += "\nAs in viaduct bench:\n";
  for (const FlagGroup& group : benchFlags())
    for (const BenchFlag& flag : group.flags)
      if (isHandedOn(flag.name)) out += lineOf(flag);
  return fmt::format("{}\nExamples:\n{}\n{}", out, kExamples, kEnd);
}

}  // namespace viaduct::app
