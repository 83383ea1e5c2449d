// Letters, parts and numbers of texts, in ASCII. Threads: pure functions.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace viaduct::base {

std::string lower(std::string_view text);
std::string upper(std::string_view text);
// Whether the texts are equal, regardless of case.
bool sameWord(std::string_view a, std::string_view b);

// The text without white space at its ends.
std::string_view trimmed(std::string_view text);
// The words between white space.
std::vector<std::string_view> wordsOf(std::string_view text);
// "a,b,,c" in its parts, without empty ones.
std::vector<std::string> partsOf(std::string_view text, char between = ',');

// "http://user:word@host" as "http://***@host".
std::string withoutUser(std::string_view url);

// `lead` and `text` in lines of at most `width` columns, broken between words if possible. Further
// lines are indented like the text.
std::string paragraph(std::string_view lead, std::string_view text, std::size_t width = 80);

// Reads the whole text as a number. Nothing for other texts, for infinite numbers and for NaN.
// `form`: as std::from_chars has it.
template <class Number, class... Form>
std::optional<Number> numberIn(std::string_view text, Form... form) {
  Number out{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, out, form...);
  if (error != std::errc() || stop != end) return std::nullopt;
  if constexpr (std::floating_point<Number>)
    if (!std::isfinite(out)) return std::nullopt;
  return out;
}

}  // namespace viaduct::base
