// The words that completion offers where the form of a value does not list them. Threads: pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "viaduct/command_page.h"

namespace viaduct::app {

// Returns the words for the value of a flag, or for an argument. Empty if any text may stand there.
std::vector<std::string> wordsOf(const CommandPage& page, const PageEntry& entry);

}  // namespace viaduct::app
