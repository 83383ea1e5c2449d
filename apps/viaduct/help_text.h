// Formats help for a terminal of 80 columns. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::app {

// Wraps lines that are too long. The rest of a wrapped line keeps its indent. The text ends with a
// line break.
std::string wrapText(std::string_view text);

// Returns one flag or command with its description, in two columns.
std::string helpEntry(std::string_view name, std::string_view about);

// Appends the default, as in "time of each row [200ms]".
std::string withDefault(std::string_view about, std::string_view fallback);

}  // namespace viaduct::app
