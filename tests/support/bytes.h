// Operations on many bytes, compiled with optimisation. Test programs are compiled without it, and
// a loop over some megabytes would take longer there than the test. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

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
// The number of bytes that differ from `one`.
std::size_t countOther(std::span<const std::byte> bytes, std::byte one);
// Fills with random bytes: each eight bytes depend on their place and on the seed.
void fillRandom(std::span<std::byte> bytes, std::uint64_t seed);

}  // namespace viaduct::testing
