// Parses command lines as gflags does: --flag=v, --flag v, -flag v, dashes or underscores, --flag
// and --noflag for yes and no. Some flags have a short name: -o for --output. An argument may also
// be named: --model X in place of X. Threads: pure functions and plain values.
#pragma once

#include <viaduct/result.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viaduct/command_page.h"
#include "viaduct/help_text.h"

namespace viaduct::app {

// One flag of a command, or an argument without a flag. The parser, --help and the documents are
// made from this row.
template <class Options>
struct Flag {
  std::string_view name;  // with underscores; an argument has a name in capitals
  // The form of its value: "SIZE", "a|b"; empty: yes or no. "FILE ...": the flag takes all words up
  // to the next flag, and may be repeated. "-- COMMAND": the argument is all words behind "--".
  std::string_view form;
  std::string_view fallback;  // its default, as text; "required": the flag must be given
  std::string_view help;
  // Parses the value. Null: this command accepts the flag without using it, and `help` says so.
  Status (*apply)(std::string_view text, Options& into);
};

// True for the name of an argument.
inline bool isArgument(std::string_view name) { return name[0] >= 'A' && name[0] <= 'Z'; }

// Returns "--op-type" for "op_type" if `between_words` is a dash. The name of an argument stays.
std::string spelled(std::string_view flag, char between_words);
// True if the name is a word of the list, whose words are joined by blanks.
bool isListed(std::string_view name, std::string_view list);
// Returns the spellings of a flag, the short one first if there is one: "-o" and "--output".
std::vector<std::string> spellings(std::string_view flag, char between_words);

// A flag that the user gave. `from` is its place for errors: "--block_sizes", or "bench.toml line
// 3: block_sizes".
struct Given {
  std::string name = {};
  std::string text = {};
  std::string from = {};
};

// The facts about a flag that the parser needs.
struct FlagName {
  std::string_view name;
  bool yes_or_no = false;
  bool works = true;    // false: error messages never suggest it
  bool many = false;    // takes all words up to the next flag, and may be repeated
  bool behind = false;  // an argument that takes the words behind "--"
  bool required = false;
};
template <class Options>
FlagName nameOf(const Flag<Options>& flag) {
  return {.name = flag.name,
          .yes_or_no = flag.form.empty(),
          .works = flag.apply != nullptr,
          .many = flag.form.ends_with(" ..."),
          .behind = flag.form.starts_with("--"),
          .required = flag.fallback == "required"};
}

// The parsed flags in order, and one problem for each word that is no flag. A problem names the
// word and the most similar flags.
struct FlagsRead {
  std::vector<Given> given = {};
  std::vector<Error> problems = {};
};
// A second value for a flag of one value is a problem, because one of the two would be lost.
// With kLastWins, the last value wins, as with gflags.
enum class Repeats : bool { kRefused, kLastWins };
// Returns an error that says which other command has this flag, and what to do. Nothing: none has
// it.
using Elsewhere = std::function<std::optional<Error>(std::string_view flag)>;
FlagsRead readFlags(std::span<const std::string> words, std::span<const FlagName> known,
                    Repeats repeats = Repeats::kRefused, const Elsewhere& elsewhere = {});
// Parses a TOML file without tables. Keys are flags; values are strings, numbers, booleans, or
// lists of them. Parsing stops at the first line that is not TOML.
FlagsRead readFlagFile(const std::string& file, std::span<const FlagName> known,
                       const Elsewhere& elsewhere = {});

// Makes the error for an unknown flag. The caller adds the place of the flag, as in Given::from.
Error unknownFlag(std::string_view flag, std::span<const FlagName> known,
                  const Elsewhere& elsewhere);

Error badFlag(std::string_view flag, std::string detail, std::string remedy = {});

// Accepts 1, true, yes, y, t, on and their opposites, in either case.
Result<bool> parseYesNo(std::string_view text);
// Returns "did you mean --x or --y?", or a hint to --help if no flag is similar. `related`:
// considers only flags whose name contains `name`, or is a part of it.
std::string nearestFlags(std::string_view name, std::span<const FlagName> known,
                         bool related = false);

}  // namespace viaduct::app
