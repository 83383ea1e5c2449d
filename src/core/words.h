// Parts of short texts. Threads: pure functions.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace viaduct::core {

// The first word of PathShare::way: "tcp" of "tcp;ofi_rxm" and of "tcp/eth0".
constexpr std::string_view firstWord(std::string_view way) {
  return way.substr(0, way.find_first_of(";,/"));
}

constexpr bool isOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace viaduct::core
