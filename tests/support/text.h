// Searches in texts, for tests. Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace viaduct::testing {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The width of the longest line of an ASCII text.
inline std::size_t widestLine(const std::string& text) {
  std::size_t out = 0, from = 0;
  for (std::size_t end = 0; end != std::string::npos; from = end + 1) {
    end = text.find('\n', from);
    out = std::max(out, std::min(end, text.size()) - from);
  }
  return out;
}

}  // namespace viaduct::testing
