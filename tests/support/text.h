// Searches in texts, for tests. Threads: any.
#pragma once

#include <string>

namespace viaduct::testing {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace viaduct::testing
