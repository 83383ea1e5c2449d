// Command lines as gflags reads them, over a table: --flag=v, --flag v, -flag v, dashes or
// underscores, --flag and --noflag for yes and no. Threads: pure functions and plain values.
#pragma once

#include <viaduct/result.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viaduct/command_page.h"
#include "viaduct/help_text.h"

namespace viaduct::app {

// One flag: help, documents, the settings record and the parser all read this row.
template <class Options>
struct Flag {
  std::string_view name;      // with underscores
  std::string_view form;      // what its value looks like: "SIZE", "a|b"; empty: yes or no
  std::string_view fallback;  // its default, as text
  std::string_view help;
  // Null: it does nothing here; `help` says what it is for.
  Status (*apply)(std::string_view text, Options& into);
};

// "--op-type" for "op_type".
std::string spelled(std::string_view flag, char between_words);

// For help and manuals. `fallback`: the default, as text.
template <class Options>
PageEntry entryOf(const Flag<Options>& flag, char between_words, std::string_view fallback) {
  return {.names = {spelled(flag.name, between_words)},
          .form = std::string(flag.form),
          .about = withDefault(flag.help, flag.form.empty() ? "" : fallback)};
}

// A flag that was given. `from`: "--block_sizes", or "bench.toml line 3: block_sizes".
struct Given {
  std::string name = {};
  std::string text = {};
  std::string from = {};
};

// An error names the place where the flag was given.
template <class Options>
Status applyFlag(const Flag<Options>& flag, const Given& given, Options& into) {
  auto applied = flag.apply(given.text, into);
  if (applied) return applied;
  Error error = std::move(applied).error();
  error.operation = given.from;
  return error;
}

// What the reader has to know of a flag.
struct FlagName {
  std::string_view name;
  bool yes_or_no = false;
  bool works = true;  // false: never suggested in the place of a wrong one
};

// The flags that can be read, in order, and one problem for each of the others. A problem names the
// word, and for an unknown flag those that are nearest.
struct FlagsRead {
  std::vector<Given> given = {};
  std::vector<Error> problems = {};
};
FlagsRead readFlags(std::span<const std::string> words, std::span<const FlagName> known);
// The same from a TOML file without tables: keys are flags, values are texts, numbers, booleans, or
// lists of them. Behind a line that is no TOML nothing is read.
FlagsRead readFlagFile(const std::string& file, std::span<const FlagName> known);

Error badFlag(std::string_view flag, std::string detail, std::string remedy = {});

// 1, true, yes, y, t, on and their opposites, in either case.
Result<bool> parseYesNo(std::string_view text);
// "did you mean --x or --y?"; empty when nothing is near.
std::string nearestFlags(std::string_view name, std::span<const FlagName> known);

}  // namespace viaduct::app
