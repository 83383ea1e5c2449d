// Enumerators and their words, in one table for writing and reading. Threads: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace viaduct::base {

template <class T>
struct Word {
  const char* word;
  T value;
};
template <class T, std::size_t N>
using Words = std::array<Word<T>, N>;

template <class T, std::size_t N>
constexpr const char* wordOf(const Words<T, N>& words, T value) {
  for (const Word<T>& one : words)
    if (one.value == value) return one.word;
  return "?";
}

// The value of a word, regardless of case.
template <class T, std::size_t N>
std::optional<T> valueOf(const Words<T, N>& words, std::string_view text) {
  for (const Word<T>& one : words)
    if (sameWord(one.word, text)) return one.value;
  return std::nullopt;
}

// "a, b, c"
template <class T, std::size_t N>
std::string listOf(const Words<T, N>& words) {
  std::string out;
  for (const Word<T>& one : words) out += (out.empty() ? "" : ", ") + std::string(one.word);
  return out;
}

}  // namespace viaduct::base
