#include "viaduct/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"

namespace viaduct::app {
namespace {

// With gflags, these flags name files and variables that hold more flags. They are refused here, so
// that a command line shows all of its flags.
constexpr std::array<std::string_view, 3> kElsewhere{"flagfile", "fromenv", "tryfromenv"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kShort{
    {{"h", "help"}, {"i", "interval"}, {"o", "output"}, {"v", "verbose"}, {"V", "version"}}};

const FlagName* find(std::string_view name, std::span<const FlagName> known) {
  const auto at =
      std::find_if(known.begin(), known.end(), [&](const FlagName& f) { return f.name == name; });
  return at == known.end() ? nullptr : &*at;
}

bool isYesNo(std::string_view text) { return parseYesNo(text).has_value(); }

// A word of the command line that starts with a dash.
struct DashWord {
  std::string name;  // with underscores
  std::optional<std::string> value;
};
DashWord splitWord(std::string_view word) {
  word.remove_prefix(word.rfind("--", 0) == 0 ? 2 : 1);
  const auto equals = word.find('=');
  DashWord out{std::string(word.substr(0, equals)), {}};
  std::replace(out.name.begin(), out.name.end(), '-', '_');
  for (const auto& [letter, name] : kShort)
    if (out.name == letter) out.name = name;
  if (equals != std::string_view::npos) out.value = word.substr(equals + 1);
  return out;
}

// True if `longer` contains the name. False for shorter names, which too many flags contain.
bool isInside(std::string_view name, std::string_view longer) {
  return name.size() > 3 && longer.find(name) != std::string_view::npos;
}

class Reader {
 public:
  Reader(std::span<const std::string> words, std::span<const FlagName> known, Repeats repeats,
         const Elsewhere& elsewhere)
      : words_(words), known_(known), repeats_(repeats), elsewhere_(elsewhere) {
    for (const FlagName& one : known)
      if (isArgument(one.name)) arguments_.push_back(&one);
  }

  FlagsRead read() {
    for (; at_ < words_.size(); ++at_)
      if (auto taken = take(words_[at_]); !taken) out_.problems.push_back(std::move(taken).error());
    return std::move(out_);
  }

 private:
  Status take(const std::string& word) {
    if (word.size() < 2 || word[0] != '-' || word == "--") return takeArgument(word);
    DashWord flag = splitWord(word);
    if (std::find(kElsewhere.begin(), kElsewhere.end(), flag.name) != kElsewhere.end()) {
      if (!flag.value) skipValue();
      return badFlag("--" + flag.name, "flags from gflags files and the environment are not read",
                     "write the flags on the command line, or in a --config_file");
    }
    const FlagName* named = find(flag.name, known_);
    if (named == nullptr) named = argumentNamed(flag.name);
    if (named == nullptr) return negated(word, flag);
    if (flag.value) {
      VIADUCT_CHECK(add(*named, *std::move(flag.value)));
    } else {
      VIADUCT_TRY(const std::string value, nextValue(*named, flag.name));
      VIADUCT_CHECK(add(*named, value));
    }
    while (named->many && hasNext() && !words_[at_ + 1].starts_with('-'))
      VIADUCT_CHECK(add(*named, words_[++at_]));
    return Ok{};
  }

  // The value of a flag without "=".
  Result<std::string> nextValue(const FlagName& named, const std::string& flag) {
    if (named.yes_or_no && !(hasNext() && arguments_.empty() && isYesNo(words_[at_ + 1])))
      return std::string("true");
    if (!hasNext()) return badFlag("--" + flag, "a value is missing");
    return words_[++at_];
  }

  Status takeArgument(const std::string& word) {
    const FlagName* const argument = nextArgument();
    if (argument == nullptr || argument->behind != (word == "--"))
      return badFlag("command line", fmt::format("\"{}\" is not a flag", word),
                     "write every option as --name value");
    if (!argument->behind) return add(*argument, word);
    while (hasNext()) VIADUCT_CHECK(add(*argument, words_[++at_]));
    return Ok{};
  }

  // Handles --noflag.
  Status negated(const std::string& word, const DashWord& flag) {
    const bool no = flag.name.rfind("no", 0) == 0 && !flag.value;
    const FlagName* named = no ? find(std::string_view(flag.name).substr(2), known_) : nullptr;
    if (named == nullptr || !named->yes_or_no) {
      if (!flag.value) skipValue();
      Error unknown = unknownFlag(flag.name, known_, elsewhere_);
      unknown.operation = word.substr(0, word.find('='));
      return unknown;
    }
    return add(*named, "false");
  }

  // Skips the word after an unknown flag, because it is most likely the flag's value.
  void skipValue() {
    if (hasNext() && !words_[at_ + 1].starts_with('-')) ++at_;
  }

  const FlagName* argumentNamed(std::string_view flag) const {
    for (const FlagName* one : arguments_)
      if (!one->behind && base::lower(one->name) == flag) return one;
    return nullptr;
  }
  // Returns the argument for a word without a flag: the first one that is not given yet.
  const FlagName* nextArgument() const {
    for (const FlagName* one : arguments_)
      if (one->many || !isGiven(one->name)) return one;
    return arguments_.empty() ? nullptr : arguments_.back();
  }
  bool isGiven(std::string_view name) const {
    return std::ranges::find(out_.given, name, &Given::name) != out_.given.end();
  }

  bool hasNext() const { return at_ + 1 < words_.size(); }
  Status add(const FlagName& named, std::string value) {
    if (isGiven(named.name) && !named.many && !named.behind && repeats_ == Repeats::kRefused)
      return badFlag(spelled(named.name, '_'), "it is given twice", "give it once");
    out_.given.push_back({std::string(named.name), std::move(value), spelled(named.name, '_')});
    return Ok{};
  }

  std::span<const std::string> words_;
  std::span<const FlagName> known_;
  const Repeats repeats_;
  const Elsewhere& elsewhere_;
  std::vector<const FlagName*> arguments_;  // they take words without a flag
  std::size_t at_ = 0;
  FlagsRead out_;
};

}  // namespace

std::string spelled(std::string_view flag, char between_words) {
  std::string name(flag);
  if (isArgument(name)) return name;
  std::replace(name.begin(), name.end(), '_', between_words);
  return "--" + name;
}

bool isListed(std::string_view name, std::string_view list) {
  return fmt::format(" {} ", list).find(fmt::format(" {} ", name)) != std::string::npos;
}

std::vector<std::string> spellings(std::string_view flag, char between_words) {
  std::vector<std::string> out;
  for (const auto& [letter, name] : kShort)
    if (name == flag) out.push_back(fmt::format("-{}", letter));
  out.push_back(spelled(flag, between_words));
  return out;
}

Error badFlag(std::string_view flag, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = std::string(flag),
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

Result<bool> parseYesNo(std::string_view text) {
  constexpr std::array<std::string_view, 6> kYes{"1", "true", "yes", "y", "t", "on"};
  constexpr std::array<std::string_view, 6> kNo{"0", "false", "no", "n", "f", "off"};
  const std::string word = base::lower(text);
  if (std::find(kYes.begin(), kYes.end(), word) != kYes.end()) return true;
  if (std::find(kNo.begin(), kNo.end(), word) != kNo.end()) return false;
  return badFlag("flag", fmt::format("\"{}\" is neither yes nor no", text),
                 "write 1, true, yes, or 0, false, no");
}

std::string nearestFlags(std::string_view name, std::span<const FlagName> known, bool related) {
  constexpr std::size_t kMost = 3;
  const std::size_t farthest = std::max<std::size_t>(name.size() / 3, 2);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const FlagName& flag : known) {
    const bool inside = isInside(name, flag.name) || isInside(flag.name, name);
    if (!flag.works || (related && !inside)) continue;
    const std::size_t off = inside ? 1 : base::distance(name, flag.name);
    if (off <= farthest) near.emplace_back(off, flag.name);
  }
  std::sort(near.begin(), near.end());
  near.resize(std::min(near.size(), kMost));
  std::vector<std::string> names;
  names.reserve(near.size());
  for (const auto& [off, flag] : near) names.push_back("--" + flag);
  if (names.empty()) return "--help lists all flags";
  return fmt::format("did you mean {}?", fmt::join(names, " or "));
}

Error unknownFlag(std::string_view flag, std::span<const FlagName> known,
                  const Elsewhere& elsewhere) {
  auto owned = elsewhere ? elsewhere(flag) : std::nullopt;
  const bool related = owned.has_value();  // a flag of another command is no misspelling
  Error out = owned ? *std::move(owned) : badFlag("", "there is no such flag");
  if (out.remedy.empty()) out.remedy = nearestFlags(flag, known, related);
  return out;
}

FlagsRead readFlags(std::span<const std::string> words, std::span<const FlagName> known,
                    Repeats repeats, const Elsewhere& elsewhere) {
  return Reader(words, known, repeats, elsewhere).read();
}

}  // namespace viaduct::app
