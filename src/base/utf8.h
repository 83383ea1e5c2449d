// Characters of texts that may contain bytes that are not UTF-8. Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace viaduct::base {

// The character U+FFFD, which replaces bytes that are no character.
inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The number of bytes of the character at `at`; 0: there is none.
std::size_t characterSize(std::string_view text, std::size_t at);

// The number of a terminal's columns that a text takes.
std::size_t shownWidth(std::string_view text);
// The text, or its beginning and "...", in at most `width` columns.
std::string shortened(std::string_view text, std::size_t width);

}  // namespace viaduct::base
