// Parses the part of TOML that flags need: `key = value` lines, comments, and lists of values.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "base/file_error.h"
#include "base/text.h"
#include "viaduct/flags.h"

namespace viaduct::app {
namespace {

// Returns a TOML number in decimal, as the parsers of flags expect it.
std::optional<std::string> decimal(std::string_view word) {
  std::string digits(word);
  std::erase(digits, '_');
  for (const auto& [prefix, base] : {std::pair("0x", 16), std::pair("0o", 8), std::pair("0b", 2)})
    if (digits.starts_with(prefix)) {
      const auto whole = base::numberIn<std::uint64_t>(std::string_view(digits).substr(2), base);
      return whole ? std::optional(fmt::format("{}", *whole)) : std::nullopt;
    }
  if (digits.starts_with('+')) digits.erase(0, 1);
  if (const auto whole = base::numberIn<std::int64_t>(digits)) return fmt::format("{}", *whole);
  const auto real = base::numberIn<double>(digits);
  if (!real) return std::nullopt;
  return fmt::format("{}", *real);
}

class FlagFile {
 public:
  FlagFile(const std::string& name, std::string_view text, std::span<const FlagName> known,
           const Elsewhere& elsewhere)
      : name_(name), rest_(text), known_(known), elsewhere_(elsewhere) {}

  FlagsRead read() {
    for (skipLines(); !rest_.empty(); skipLines())
      if (auto done = readFlag(); !done) {
        out_.problems.push_back(std::move(done).error());
        break;
      }
    return std::move(out_);
  }

 private:
  // Fails only if the rest of the file cannot be parsed.
  Status readFlag() {
    if (take('[')) return table(takeUntil("]\n"));
    VIADUCT_TRY(const std::string key, takeKey());
    skipBlanks();
    if (rest_.starts_with('.')) return table(key);
    if (!take('=')) return bad(fmt::format("there is no = after \"{}\"", key));
    skipBlanks();
    if (rest_.starts_with('{')) return table(key);
    auto one = startGiven(key);
    VIADUCT_TRY(std::string value, take('[') ? takeList(key) : takeScalar(key));
    skipBlanks();
    if (!rest_.empty() && !rest_.starts_with('\n'))
      return bad(fmt::format("there is more after the value of \"{}\"", key));
    if (one)
      out_.given.push_back({std::move(one->name), std::move(value), std::move(one->from)});
    else
      out_.problems.push_back(std::move(one).error());
    return Ok{};
  }

  // Returns the flag that `key` names, without its text.
  Result<Given> startGiven(const std::string& key) const {
    std::string name = key;
    std::replace(name.begin(), name.end(), '-', '_');
    const auto known = std::ranges::find_if(known_, [&](const FlagName& one) {
      return isArgument(one.name) ? base::lower(one.name) == name : one.name == name;
    });
    if (known == known_.end()) return unknownKey(name);
    name = known->name;
    if (std::ranges::find(out_.given, name, &Given::name) != out_.given.end())
      return bad(fmt::format("\"{}\" is given twice", name));
    return Given{.name = name, .from = fmt::format("{} line {}: {}", name_, line_, name)};
  }

  Result<std::string> takeKey() {
    if (rest_.starts_with('"') || rest_.starts_with('\'')) return takeQuoted();
    const std::string_view key = takeUntil(" \t\r\n=.#");
    if (key.empty()) return bad("there is no key");
    return std::string(key);
  }

  // Parses a list after its opening bracket. Joins the values by commas.
  Result<std::string> takeList(const std::string& key) {
    std::string all;
    for (skipLines(); !take(']'); skipLines()) {
      VIADUCT_TRY(const std::string one, takeScalar(key));
      all += (all.empty() ? "" : ",") + one;
      skipLines();
      if (!take(',') && !rest_.starts_with(']'))
        return bad(fmt::format("the list of \"{}\" lacks a comma or a ]", key));
    }
    return all;
  }

  Result<std::string> takeScalar(const std::string& key) {
    if (rest_.starts_with('"') || rest_.starts_with('\'')) return takeQuoted();
    const std::string_view word = takeUntil(" \t\r\n,]#");
    if (word == "true" || word == "false") return std::string(word);
    if (auto number = decimal(word)) return *std::move(number);
    return bad(fmt::format("the value of \"{}\" is not a text, number, boolean or list", key),
               "put text into quotes");
  }

  // Parses "text" with the escapes of takeEscaped(), or 'text' without escapes.
  Result<std::string> takeQuoted() {
    const char quote = takeOne();
    std::string text;
    while (!rest_.empty() && !rest_.starts_with('\n')) {
      const char c = takeOne();
      if (c == quote) return text;
      if (c == '\\' && quote == '"') {
        VIADUCT_TRY(const char meant, takeEscaped());
        text += meant;
      } else {
        text += c;
      }
    }
    return bad(fmt::format("a text has no closing {}", quote));
  }

  // Parses an escape after its backslash.
  Result<char> takeEscaped() {
    if (take('"')) return '"';
    if (take('\\')) return '\\';
    if (take('t')) return '\t';
    if (take('n')) return '\n';
    return bad("the escapes of a text are \\\", \\\\, \\t and \\n",
               "put the text into single quotes");
  }

  void skipBlanks() {
    while (take(' ') || take('\t') || take('\r')) {
    }
    if (rest_.starts_with('#')) takeUntil("\n");
  }
  void skipLines() {
    for (skipBlanks(); take('\n'); skipBlanks()) ++line_;
  }
  char takeOne() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  bool take(char c) {
    const bool there = rest_.starts_with(c);
    if (there) rest_.remove_prefix(1);
    return there;
  }
  std::string_view takeUntil(std::string_view stops) {
    const std::string_view taken = rest_.substr(0, rest_.find_first_of(stops));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  Error unknownKey(const std::string& name) const {
    Error unknown = unknownFlag(name, known_, elsewhere_);
    return bad(fmt::format("unknown key \"{}\": {}", name, unknown.detail),
               std::move(unknown.remedy));
  }
  Error table(std::string_view name) const {
    return bad(fmt::format("\"{}\" is a table", name),
               "write flag = value lines, without a [table]");
  }
  Error bad(std::string detail, std::string remedy = {}) const {
    return {.code = Code::kInvalid,
            .operation = "--config_file",
            .detail = fmt::format("line {}: {}", line_, detail),
            .file = name_,
            .remedy = std::move(remedy)};
  }

  const std::string& name_;
  std::string_view rest_;  // the text that is not read yet
  std::span<const FlagName> known_;
  const Elsewhere& elsewhere_;
  std::size_t line_ = 1;
  FlagsRead out_;
};

}  // namespace

FlagsRead readFlagFile(const std::string& file, std::span<const FlagName> known,
                       const Elsewhere& elsewhere) {
  std::ifstream in(file);
  if (in) errno = 0;
  std::ostringstream text;
  text << in.rdbuf();
  // A directory opens, but reading it fails and sets errno. An empty file also fails to read,
  // without errno, and is valid.
  if (!in || (!text && errno != 0))
    return {.problems = {base::fileError("--config_file", errno, file)}};
  return FlagFile(file, text.str(), known, elsewhere).read();
}

}  // namespace viaduct::app
