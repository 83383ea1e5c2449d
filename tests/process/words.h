// The line format between tests and the processes that they start. Threads: plain values.
#pragma once

#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::testing {

inline std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

inline std::string toHex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4U];
    text += kDigits[std::to_integer<unsigned>(b) & 15U];
  }
  return text;
}

inline std::vector<std::byte> fromHex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (; text.size() >= 2; text.remove_prefix(2))
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(0, 2)), nullptr, 16)));
  return bytes;
}

}  // namespace viaduct::testing
