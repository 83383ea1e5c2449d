// Numbers from the environment that choose a random test and its length. Threads: any.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace viaduct::testing {

inline std::uint64_t fromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace viaduct::testing
