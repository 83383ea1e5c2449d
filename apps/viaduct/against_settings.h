// Parses the text of `--against`: flags and variables that side B has in addition to the command
// line. Threads: pure functions and plain values.
#pragma once

#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "viaduct/flags.h"

namespace viaduct::app {

struct OtherSettings {
  std::vector<std::string> flags = {};      // words of a command line
  std::vector<std::string> variables = {};  // NAME=value
  std::vector<Error> problems = {};
};

// Splits a text as a shell does: at blanks outside of quotes.
Result<std::vector<std::string>> splitWords(std::string_view text);
// Refuses flags and variables that must be equal on both sides, and unknown variables. Unknown
// flags and wrong values are reported later, when side B's command line is parsed.
OtherSettings readOtherSettings(std::string_view text, std::span<const FlagName> known);
// Refuses NAME=value if NAME is no setting, or one that compared runs must have in common.
Status checkVariable(const std::string& word);
bool isAssignment(std::string_view word);
// Returns `settings` with the assignments applied.
Result<Settings> withVariables(Settings settings, const std::vector<std::string>& variables);
// Returns the error with a text that says that it is inside --against.
Error insideAgainst(Error error);

}  // namespace viaduct::app
