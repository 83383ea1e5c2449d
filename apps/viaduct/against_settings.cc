#include "viaduct/against_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace viaduct::app {
namespace {

struct Common {
  std::string_view names, why;
};
constexpr auto kOnCommandLine = ": give it on the command line";
constexpr std::array kCommonFlags{
    Common{"scheme NAME members mode num_initiator_dev num_target_dev local_workers",
           "both sides have the same workers"},
    Common{"GPUS", "both sides have the same pairs of GPUs"},
    Common{"block_sizes start_block_size max_block_size", "both sides have the same block sizes"},
    Common{"meet secret rank etcd_endpoints etcd_user etcd_password etcd_ca etcd_cert etcd_key "
           "benchmark_group meet_timeout runtime_type asio_address asio_port",
           "the workers of both sides meet at one place"},
    Common{"output json config_file help against rounds fail_if_slower least_effect junit",
           "it applies to the whole comparison"},
};
constexpr auto kAgents = "it applies to the whole run: set it in the environment";
constexpr std::array kCommonVariables{
    Common{"VIADUCT_NAME VIADUCT_LISTEN VIADUCT_SECRET VIADUCT_INSECURE VIADUCT_NAMESPACE",
           kAgents},
    Common{"VIADUCT_BACKENDS", "rows name their backends: use --backend"},
};

std::optional<std::string> whyCommon(std::span<const Common> table, std::string_view name) {
  for (const Common& one : table)
    if (isListed(name, one.names)) return std::string(one.why);
  return std::nullopt;
}

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> split() {
    for (const char c : text_) take(c);
    if (quote_ != 0)
      return badFlag("--against", fmt::format("a quote ({}) is not closed in: {}", quote_, text_));
    end();
    return std::move(words_);
  }

 private:
  void take(char c) {
    if (quote_ != 0) {
      if (c == quote_)
        quote_ = 0;
      else
        word_ += c;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      end();
    } else {
      begun_ = true;
      if (c == '\'' || c == '"')
        quote_ = c;
      else
        word_ += c;
    }
  }
  void end() {
    if (std::exchange(begun_, false)) words_.push_back(std::exchange(word_, {}));
  }

  std::string_view text_;
  std::vector<std::string> words_;
  std::string word_;
  bool begun_ = false;  // true for an empty word too, such as ''
  char quote_ = 0;
};

}  // namespace

bool isAssignment(std::string_view word) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  return word.substr(0, equals).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
         std::string_view::npos;
}

Status checkVariable(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const bool meets = name.rfind("VIADUCT_MEET", 0) == 0 || name.rfind("NIXL_ETCD", 0) == 0 ||
                     name.rfind("NIXL_TCPSTORE", 0) == 0;
  if (const auto why = meets ? kAgents : whyCommon(kCommonVariables, name))
    return badFlag(name, "both sides need the same value", *why);
  const auto rows = settingRows();
  if (std::any_of(rows.begin(), rows.end(),
                  [&](const SettingRow& row) { return row.variable == name; }))
    return Ok{};
  const std::string_view near = nearestSetting(name);
  return badFlag(
      name, "there is no such setting",
      near.empty() ? "`viaduct settings` lists all" : fmt::format("did you mean {}?", near));
}

Error insideAgainst(Error error) {
  error.operation = "--against: " + error.operation;
  return error;
}

Result<std::vector<std::string>> splitWords(std::string_view text) {
  return Splitter(text).split();
}

OtherSettings readOtherSettings(std::string_view text, std::span<const FlagName> known) {
  const auto words = splitWords(text);
  if (!words) return {.problems = {words.error()}};
  if (words->empty())
    return {.problems = {
                badFlag("--against", "the text names no setting",
                        "--against '--memory malloc', --against 'VIADUCT_SOCKETS=4 --batch 16'")}};
  OtherSettings out;
  for (const std::string& word : *words)
    (isAssignment(word) ? out.variables : out.flags).push_back(word);
  for (const std::string& word : out.variables)
    if (const auto fits = checkVariable(word); !fits)
      out.problems.push_back(insideAgainst(fits.error()));
  const FlagsRead read = readFlags(out.flags, known);
  for (const Given& one : read.given)
    if (const auto why = whyCommon(kCommonFlags, one.name))
      out.problems.push_back(insideAgainst(
          badFlag(one.from, "both sides need the same value", *why + kOnCommandLine)));
  return out;
}

Result<Settings> withVariables(Settings settings, const std::vector<std::string>& variables) {
  for (const std::string& word : variables) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals), text = word.substr(equals + 1);
    for (const SettingRow& row : settingRows()) {
      if (row.variable != name) continue;
      // An empty value restores the default, as in the environment.
      const auto parsed = row.parse(text.empty() ? row.fallback : text, settings);
      if (!parsed)
        return badFlag(word, "the value cannot be parsed",
                       fmt::format("give {} {}", name, parsed.error().remedy));
    }
  }
  return settings;
}

}  // namespace viaduct::app
