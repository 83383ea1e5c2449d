// Many bytes in one go: a test program is compiled without optimisation, where a loop over each
// byte of some megabytes takes longer than the test. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/random.h"

namespace viaduct::testing {

inline void fillWith(std::span<std::byte> bytes, std::byte one) {
  if (!bytes.empty()) std::memset(bytes.data(), std::to_integer<int>(one), bytes.size());
}
inline bool allAre(std::span<const std::byte> bytes, std::byte one) {
  return bytes.empty() ||
         (bytes[0] == one && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}
inline bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}
inline void fillRandom(std::span<std::byte> bytes, std::uint64_t seed) {
  base::Random random(seed);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

}  // namespace viaduct::testing
