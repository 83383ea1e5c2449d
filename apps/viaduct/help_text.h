// Help that fits a terminal of 80 columns. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::app {

// Breaks the lines that are too long. A broken line continues at its own indent. The text ends with
// a line break.
std::string wrapText(std::string_view text);

// One flag or command with its description, in two columns.
std::string helpEntry(std::string_view name, std::string_view about);

// "time of each row [200ms]".
std::string withDefault(std::string_view about, std::string_view fallback);

}  // namespace viaduct::app
