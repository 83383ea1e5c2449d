#include "viaduct/bench_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "measure/result/text.h"
#include "viaduct/bench_values.h"
#include "viaduct/env.h"
#include "viaduct/help_text.h"

namespace viaduct::app {
namespace {

constexpr std::array<std::string_view, 5> kSecrets{"etcd_password", "secret", "obj_access_key",
                                                   "obj_secret_key", "obj_session_token"};
// Meeting places and credentials are not recorded, because people pass result files around.
constexpr std::array<std::string_view, 15> kUnrecorded{"etcd_password",
                                                       "secret",
                                                       "meet",
                                                       "etcd_endpoints",
                                                       "etcd_user",
                                                       "etcd_ca",
                                                       "etcd_cert",
                                                       "etcd_key",
                                                       "asio_address",
                                                       "asio_port",
                                                       "obj_access_key",
                                                       "obj_secret_key",
                                                       "obj_ca_bundle",
                                                       "obj_session_token",
                                                       "obj_endpoint_override"};

const BenchFlag* find(std::string_view name, std::span<const BenchFlag> flags) {
  for (const BenchFlag& flag : flags)
    if (flag.name == name) return &flag;
  return nullptr;
}

const BenchFlag& flagNamed(std::string_view name) {
  for (const FlagGroup& group : benchFlags())
    if (const BenchFlag* flag = find(name, group.flags)) return *flag;
  const BenchFlag* other = find(name, flagsOfOtherBackends());
  return other != nullptr ? *other : *find(name, absentFlags());
}

bool isDefault(const BenchFlag& flag, std::string_view text) {
  const auto yes = parseYesNo(text), usual = parseYesNo(flag.fallback);
  if (flag.form.empty() && yes && usual) return *yes == *usual;
  return base::sameWord(text, flag.fallback);
}

// Ignores a flag that has no effect here, or refuses it.
Status leaveOut(const BenchFlag& flag, const Given& one, BenchOptions& options) {
  if (isDefault(flag, one.text)) return Ok{};
  if (find(flag.name, flagsOfOtherBackends()) == nullptr)
    return Error{.code = Code::kUnsupported,
                 .operation = one.from,
                 .detail = std::string(flag.help),
                 .remedy = "leave it out"};
  if (std::find(options.ignored.begin(), options.ignored.end(), flag.name) == options.ignored.end())
    options.ignored.emplace_back(flag.name);
  return Ok{};
}

Status apply(const Given& one, BenchOptions& options) {
  const BenchFlag& flag = flagNamed(one.name);
  if (flag.apply == nullptr) return leaveOut(flag, one, options);
  VIADUCT_CHECK(applyFlag(flag, one, options));
  const bool hidden = std::find(kSecrets.begin(), kSecrets.end(), one.name) != kSecrets.end();
  options.given[one.name] = hidden ? "(not shown)" : one.text;
  return Ok{};
}

void applyAll(FlagsRead read, OptionsOrProblems& into) {
  std::move(read.problems.begin(), read.problems.end(), std::back_inserter(into.problems));
  for (const Given& one : read.given)
    if (auto applied = apply(one, into.options); !applied) {
      into.problems.push_back(std::move(applied).error());
      into.options.unread.push_back(one.name);
    }
}

struct Help {
  const char *name, *summary, *about, *examples;
};
constexpr Help kBench{
    "viaduct bench", "Measure transfers between workers.",
    "Measures transfers between workers. Each row names the path that the bytes took, the proof of "
    "that path, and the ceiling of the rate. Without flags, two workers on this machine "
    "measure 4 KiB to 64 MiB over local and tcp, in less than a minute.\n",
    "  Measure this machine:\n"
    "    viaduct bench\n"
    "  Measure two hosts (on node1: --rank 1):\n"
    "    viaduct bench --meet node0:7000 --secret WORD --rank 0\n"
    "  Fail unless the bytes provably go over RDMA between two hosts:\n"
    "    viaduct bench --meet node0:7000 --secret WORD --rank 0 \\\n"
    "        --backend ucx --require rdma,proven\n"
    "  Compare two settings:\n"
    "    viaduct bench --backend tcp --against 'VIADUCT_SOCKETS=4 --batch 16'\n"
    "  Measure the disk of a folder, without leaving a file:\n"
    "    viaduct bench --backend file --filepath /nvme --op read\n"
    "  Find the slowest stage between two files (docs/pipeline.md):\n"
    "    viaduct bench --pipeline file:/a,host,net,host,file:/b\n"
    "  Copy small blocks between host memory and a GPU:\n"
    "    viaduct bench --scheme swap\n"
    "  Sweep block and batch sizes:\n"
    "    viaduct bench --backend tcp --start-block-size 4K --max-block-size 1M \\\n"
    "        --start-batch-size 1 --max-batch-size 16 --json sweep.json\n"};
constexpr Help kNixlbench{"nixlbench",
                          "Measure transfers between workers, as NVIDIA's nixlbench does.",
                          "Measures transfers between workers, with the flags, the defaults and "
                          "the table of NVIDIA's nixlbench. Start one process per worker. They "
                          "meet at an etcd, by default at http://localhost:2379.\n",
                          "  Measure two hosts, with this command on both:\n"
                          "    nixlbench --etcd_endpoints http://etcd:2379 --backend UCX\n"
                          "  The same without etcd:\n"
                          "    nixlbench --runtime_type ASIO --asio_address node0 --secret WORD\n"
                          "  Measure this machine:\n"
                          "    nixlbench --local_workers 2 --backend tcp --max_block_size 1048576\n"
                          "  Measure the disk of a folder, without etcd and other workers:\n"
                          "    nixlbench --backend POSIX --filepath /nvme --storage_enable_direct\n"
                          "  Show the path and the proof of each row:\n"
                          "    nixlbench --local_workers 2 --backend tcp --output table\n"};
constexpr auto kMore =
    "Write a flag as --name value, --name=value or -name value, with dashes or underscores. A flag "
    "without a value is --name or --noname. Sizes: 65536, 64K, 1MiB, 1MB (10^6). Times: 2s, 500ms; "
    "a bare number is seconds.\n\n"
    "VIADUCT_* variables configure the agents: see `viaduct settings`. NIXL_BACKEND, "
    "NIXL_WORKER_TYPE, NIXL_TARGET_SEG_TYPE, ETCD_ENDPOINTS and NIXL_LOG_LEVEL stand for flags "
    "that are not typed.\n\n"
    "nixlbench's flags for features that are not built in are errors. Flags of storage are ignored "
    "with a note if the backend is none of storage.\n\n"
    "Exit codes:\n"
    "  0    every row was measured and is valid\n"
    "  1    a row failed or is not valid, or B is slower than --fail-if-slower allows\n"
    "  2    the command line is wrong\n"
    "  3    a worker was killed; rows measured before are kept\n"
    "  4    the comparison has too few runs to show a difference\n"
    "  130  interrupted; rows measured before are kept\n";

// Escapes bars, which end a table cell even inside of `code`.
std::string forTable(std::string_view text) {
  return measure::replaceAll(std::string(text), "|", "\\|");
}

// Quotes a text for a shell if needed.
std::string quoted(const std::string& text) {
  constexpr auto kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/=+%@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  return singleQuoted(text);
}

}  // namespace

std::string commandText(std::string program, const GivenFlags& given) {
  for (const auto& [name, value] : given)
    if (std::find(kUnrecorded.begin(), kUnrecorded.end(), name) == kUnrecorded.end())
      program += fmt::format(" --{} {}", name, quoted(value));
  return program;
}

std::vector<FlagName> benchFlagNames() {
  std::vector<FlagName> names;
  for (const FlagGroup& group : benchFlags())
    for (const BenchFlag& flag : group.flags) names.push_back(nameOf(flag));
  for (const auto flags : {absentFlags(), flagsOfOtherBackends()})
    for (const BenchFlag& flag : flags) names.push_back(nameOf(flag));
  return names;
}

OptionsOrProblems readBenchOptions(std::span<const std::string> words, bool as_nixlbench,
                                   Repeats repeats) {
  const std::vector<FlagName> names = benchFlagNames();
  FlagsRead typed = readFlags(words, names, as_nixlbench ? Repeats::kLastWins : repeats);
  OptionsOrProblems out{.options = {.as_nixlbench = as_nixlbench}};
  std::string& file = out.options.config_file;
  for (const Given& one : typed.given)
    if (one.name == "config_file") file = one.text;
  if (!file.empty()) applyAll(readFlagFile(file, names), out);
  applyAll(std::move(typed), out);
  return out;
}

std::string_view defaultOf(const BenchFlag& flag, bool as_nixlbench) {
  constexpr std::string_view kTheirs = "; nixlbench: ";
  const auto theirs = flag.fallback.find(kTheirs);
  if (theirs == std::string_view::npos) return flag.fallback;
  return as_nixlbench ? flag.fallback.substr(theirs + kTheirs.size())
                      : flag.fallback.substr(0, theirs);
}

CommandPage benchPage(bool as_nixlbench) {
  const Help& help = as_nixlbench ? kNixlbench : kBench;
  CommandPage page{.name = help.name,
                   .usage = fmt::format("{} [flags]", help.name),
                   .summary = help.summary,
                   .about = help.about,
                   .more = fmt::format("{}\nExamples:\n{}", kMore, help.examples)};
  for (const FlagGroup& group : benchFlags()) {
    PageSection& section = page.sections.emplace_back();
    section.title = group.title;
    for (const BenchFlag& flag : group.flags)
      section.entries.push_back(
          entryOf(flag, as_nixlbench ? '_' : '-', defaultOf(flag, as_nixlbench)));
  }
  return page;
}

namespace {

// Adds those flags of `viaduct bench` that a KV workload may need, and its own ones but `without`.
CommandPage withKvFlags(CommandPage page, std::span<const std::string_view> without) {
  constexpr std::array<std::string_view, 22> kUseful{
      "backend",         "op",     "memory",     "initiator_seg_type",
      "target_seg_type", "seed",   "iterations", "duration",
      "repeat",          "verify", "require",    "meet",
      "secret",          "rank",   "against",    "rounds",
      "fail_if_slower",  "output", "json",       "explain",
      "config_file",     "help"};
  const auto shows = [&](const FlagGroup& group, std::string_view flag) {
    if (std::ranges::find(without, flag) != without.end()) return false;
    return group.flags.data() == kvFlags().data() ||
           std::ranges::find(kUseful, flag) != kUseful.end();
  };
  for (const FlagGroup& group : benchFlags()) {
    PageSection section{.title = std::string(group.title)};
    for (const BenchFlag& flag : group.flags)
      if (shows(group, flag.name))
        section.entries.push_back(entryOf(flag, '-', defaultOf(flag, false)));
    if (!section.entries.empty()) page.sections.push_back(std::move(section));
  }
  return page;
}

}  // namespace

CommandPage kvBenchPage() {
  constexpr std::array<std::string_view, 4> kWithout{"kv", "trace", "speed", "prefill_rate"};
  return withKvFlags(
      {.name = "viaduct kv bench",
       .usage = "viaduct kv bench MODEL [flags]",
       .summary = "Measure how fast the KV cache of a model's requests moves.",
       .about =
           "Measures bursts of requests between two processes, a prefill and a decode worker. The "
           "blocks of a request lie at random places of two pools. Each paged row stands beside a "
           "bulk row, which moves the same bytes in one piece: the ceiling of the wire. The "
           "command "
           "is `viaduct bench --kv MODEL`, so its other flags work, too.\n",
       .more = "Exit codes are those of `viaduct bench`.\n\n"
               "Examples:\n"
               "  viaduct kv bench Llama-3.1-8B --backend tcp\n"
               "  viaduct kv bench Llama-3.1-8B --tp 4 --tp-to 8 --block-to 64 --op pull\n"
               "  viaduct kv bench DeepSeek-V4-Pro --tokens 8192,131072 --json kv.json\n"
               "  viaduct kv bench Llama-3.1-8B --meet node0:7000 --secret WORD --rank 0\n"},
      kWithout);
}

CommandPage kvTracePage() {
  constexpr std::array<std::string_view, 11> kWithout{
      "kv",         "trace",    "tokens", "requests",           "block_to",       "tp_to",
      "iterations", "duration", "repeat", "initiator_seg_type", "target_seg_type"};
  return withKvFlags(
      {.name = "viaduct kv trace",
       .usage = "viaduct kv trace FILE MODEL [flags]",
       .summary = "Replay a trace of requests, as transfers from prefill to decode.",
       .about =
           "Replays a trace in Mooncake's format between two processes. Each request starts at its "
           "time, whether or not earlier ones have ended. Prefill keeps the blocks of prefixes in "
           "a "
           "pool, and the least recently used leave first. All blocks of a request move to the "
           "pool "
           "of decode. The command is `viaduct bench --kv MODEL --trace FILE`.\n",
       .more = "Exit codes are those of `viaduct bench`.\n\n"
               "Examples:\n"
               "  viaduct kv generate --requests 500 --output trace.jsonl\n"
               "  viaduct kv trace trace.jsonl Qwen3-30B-A3B --speed 10 --prefill-rate 20000\n"},
      kWithout);
}

std::string benchFlagsPage() {
  std::string out =
      "# Flags of `viaduct bench`\n\n"
      "<!-- Generated: viaduct bench --help=markdown > docs/bench-flags.md -->\n\n"
      "[bench.md](bench.md) has examples. Called as `nixlbench`, the program has nixlbench's "
      "defaults.\n\n"
      "A repeated flag is refused. Called as `nixlbench`, the program takes the last value.\n";
  for (const FlagGroup& group : benchFlags()) {
    out += fmt::format("\n## {}\n\n| flag | default | meaning |\n|---|---|---|\n", group.title);
    for (const BenchFlag& flag : group.flags) {
      out +=
          fmt::format("| `{}{}{}` | {} | {} |\n", fmt::join(spellings(flag.name, '-'), ", "),
                      flag.form.empty() ? "" : " ", forTable(flag.form), flag.fallback, flag.help);
    }
  }
  out +=
      "\n## nixlbench flags for features that are not built in\n\n| flag | reason |\n|---|---|\n";
  for (const BenchFlag& flag : absentFlags())
    out += fmt::format("| `--{}` | {} |\n", flag.name, flag.help);
  out +=
      "\n## nixlbench flags for backends that are not built in\n\n"
      "The program ignores them with a note, as nixlbench does with another backend.\n\n"
      "| flag | backend |\n|---|---|\n";
  for (const BenchFlag& flag : flagsOfOtherBackends())
    out += fmt::format("| `--{}` | {} |\n", flag.name, flag.help);
  return out;
}

}  // namespace viaduct::app
