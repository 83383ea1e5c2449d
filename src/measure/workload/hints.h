// Remedies that name flags. A text for the user names only flags that the command has. Threads:
// pure functions.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::measure {

// The flags of a command, with underscores.
using FlagNames = std::vector<std::string>;

struct Hint {
  std::string text;            // "a larger --pipeline-depth"
  std::string_view flag = {};  // "pipeline_depth"; empty: the hint names none
};

// Joins the hints that the command can follow: "a, b or c".
std::string joined(std::initializer_list<Hint> hints, const FlagNames& flags);

}  // namespace viaduct::measure
