// Texts from outside in errors, logs and terminals. Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace viaduct::base {

// One line of printable ASCII. A tab becomes a space, and any other byte an escape like "\x1b".
// "..." stands for the bytes beyond the first `most`.
std::string printable(std::string_view text, std::size_t most = 120);

// Whether a text is one line in UTF-8, without control characters.
bool isPrintable(std::string_view text);

}  // namespace viaduct::base
