// Characters of texts that may be no UTF-8. Threads: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace viaduct::base {

// Stands for bytes that are no character.
inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// How many bytes the character at `at` has; 0 when it is none.
std::size_t characterSize(std::string_view text, std::size_t at);

}  // namespace viaduct::base
