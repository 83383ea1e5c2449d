// Secrets that people choose, and that programs guess. Threads: any.
#pragma once

#include <string_view>

namespace viaduct::base {

// True if a program may find the text by guessing: it has fewer than about 80 bits.
bool isGuessable(std::string_view text);

// Logs a warning, once in this process, if the secret is not empty and guessable. Call it where an
// end listens beyond this host.
void warnIfGuessable(std::string_view secret);

}  // namespace viaduct::base
