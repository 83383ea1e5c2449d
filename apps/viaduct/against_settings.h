// What `--against 'other settings'` says: flags and assignments that side B has on top of the
// command line. Threads: pure functions and plain values.
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
  std::vector<std::string> flags = {};      // words, as on a command line
  std::vector<std::string> variables = {};  // NAME=value
  std::vector<Error> problems = {};
};

// The words as a shell splits them: at blanks that stand in no quotes.
Result<std::vector<std::string>> splitWords(std::string_view text);
// Refuses what both sides of a comparison have in common. Flags that cannot be read are no problem
// here: they are found with the rest of side B's command line.
OtherSettings readOtherSettings(std::string_view text, std::span<const FlagName> known);
// Whether NAME=value names a setting that may differ between runs that are compared.
Status checkVariable(const std::string& word);
bool isAssignment(std::string_view word);
// The agents' settings with the assignments on top.
Result<Settings> withVariables(Settings settings, const std::vector<std::string>& variables);
// The same error, said to be inside --against.
Error insideAgainst(Error error);

}  // namespace viaduct::app
