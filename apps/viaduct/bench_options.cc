#include "viaduct/bench_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "viaduct/bench_values.h"

namespace viaduct::app {
namespace {

constexpr std::array<std::string_view, 2> kSecrets{"etcd_password", "secret"};
// Where members meet and how they get in: result files are passed around.
constexpr std::array<std::string_view, 10> kUnrecorded{
    "etcd_password", "secret",    "meet",     "etcd_endpoints", "etcd_user",
    "etcd_ca",       "etcd_cert", "etcd_key", "asio_address",   "asio_port"};

const BenchFlag* find(std::string_view name) {
  for (const FlagGroup& group : benchFlags())
    for (const BenchFlag& flag : group.flags)
      if (flag.name == name) return &flag;
  for (const BenchFlag& flag : absentFlags())
    if (flag.name == name) return &flag;
  return nullptr;
}

bool isDefault(const BenchFlag& flag, std::string_view text) {
  const auto yes = parseYesNo(text), usual = parseYesNo(flag.fallback);
  if (flag.form.empty() && yes && usual) return *yes == *usual;
  return sameWord(text, flag.fallback);
}

Status apply(const Given& one, BenchOptions& options) {
  const BenchFlag& flag = *find(one.name);
  if (flag.apply == nullptr) {
    if (isDefault(flag, one.text)) return Ok{};
    return Error{.code = Code::kUnsupported,
                 .operation = one.from,
                 .detail = std::string(flag.help),
                 .remedy = "leave it out"};
  }
  auto applied = flag.apply(one.text, options);
  if (!applied) {
    Error error = std::move(applied).error();
    error.operation = one.from;
    return error;
  }
  const bool hidden = std::find(kSecrets.begin(), kSecrets.end(), one.name) != kSecrets.end();
  options.given[one.name] = hidden ? "(not shown)" : one.text;
  return Ok{};
}

Status applyAll(const std::vector<Given>& given, BenchOptions& options) {
  for (const Given& one : given) VIADUCT_CHECK(apply(one, options));
  return Ok{};
}

constexpr auto kAbout =
    "Measures transfers between workers, and proves what it says: every row names the path that "
    "the\n"
    "bytes took, how it was proven, and what limits it. Without options: two workers on this "
    "machine,\n"
    "4 KiB to 64 MiB, over local and tcp, in less than a minute.\n";
constexpr auto kMore =
    "Every flag may be written --name value, --name=value, -name value, with dashes or "
    "underscores;\n"
    "flags without a value: --name, --noname. Sizes: 65536, 64K, 1MiB, 1MB (10^6). Times: 2s, "
    "500ms.\n"
    "Flags of nixlbench for what is not built in are known, and refused with the reason.\n\n"
    "Ends with 0 when all was measured and is believed, 1 when something is not, 2 for a wrong "
    "command\n"
    "line, 3 when a worker was killed, 130 when interrupted; rows measured until then are kept.\n"
    "Settings of the agents come from VIADUCT_* variables: see `viaduct settings`.\n";

std::string spelled(const BenchFlag& flag) {
  std::string name(flag.name);
  std::replace(name.begin(), name.end(), '_', '-');
  return fmt::format("--{}{}{}", name, flag.form.empty() ? "" : " ", flag.form);
}

// A bar ends a cell, also inside of `code`.
std::string forTable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

// As a shell takes it.
std::string quoted(const std::string& text) {
  constexpr auto kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/=+%@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
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
    for (const BenchFlag& flag : group.flags) names.push_back({flag.name, flag.form.empty()});
  for (const BenchFlag& flag : absentFlags()) names.push_back({flag.name, flag.form.empty()});
  return names;
}

Result<BenchOptions> readBenchOptions(std::span<const std::string> words, bool as_nixlbench) {
  const std::vector<FlagName> names = benchFlagNames();
  VIADUCT_TRY(const std::vector<Given> typed, readFlags(words, names));
  BenchOptions options{.as_nixlbench = as_nixlbench};
  for (const Given& one : typed)
    if (one.name == "config_file") options.config_file = one.text;
  if (!options.config_file.empty()) {
    VIADUCT_TRY(const std::vector<Given> filed, readFlagFile(options.config_file, names));
    VIADUCT_CHECK(applyAll(filed, options));
  }
  VIADUCT_CHECK(applyAll(typed, options));
  return options;
}

std::string benchHelp(bool as_nixlbench) {
  std::string out =
      fmt::format("usage: {} [flags]\n\n{}", as_nixlbench ? "nixlbench" : "viaduct bench", kAbout);
  for (const FlagGroup& group : benchFlags()) {
    out += fmt::format("\n{}:\n", group.title);
    for (const BenchFlag& flag : group.flags)
      out += fmt::format(
          "  {:<36} {}{}\n", spelled(flag), flag.help,
          flag.fallback.empty() || flag.form.empty() ? "" : fmt::format(" [{}]", flag.fallback));
  }
  return fmt::format("{}\n{}", out, kMore);
}

std::string benchFlagsPage() {
  std::string out =
      "# Flags of `viaduct bench`\n\n"
      "<!-- Generated: viaduct bench --help=markdown > docs/bench-flags.md -->\n\n"
      "[bench.md](bench.md) says what they do together. Installed also as `nixlbench`, whose flags "
      "and defaults it then has.\n";
  for (const FlagGroup& group : benchFlags()) {
    out += fmt::format("\n## {}\n\n| flag | default | meaning |\n|---|---|---|\n", group.title);
    for (const BenchFlag& flag : group.flags) {
      out += fmt::format("| `{}` | {} | {} |\n", forTable(spelled(flag)), flag.fallback, flag.help);
    }
  }
  out += "\n## nixlbench's, for what is not built in\n\n| flag | why |\n|---|---|\n";
  for (const BenchFlag& flag : absentFlags())
    out += fmt::format("| `--{}` | {} |\n", flag.name, flag.help);
  return out;
}

}  // namespace viaduct::app
