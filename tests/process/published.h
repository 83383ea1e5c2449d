// The memory of a publisher in the test of rolling restarts. Threads: plain functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace viaduct::testing::published {

inline constexpr std::uint64_t kBlock = std::uint64_t{64} << 10U, kBlocks = 64;
inline constexpr std::uint64_t kPeers = 64;  // the most, each with a block to write to

// No process dies in this test, and a busy machine may stop one for seconds.
inline constexpr std::chrono::milliseconds kDetect = std::chrono::seconds(30);

inline std::uint64_t seedOf(const std::string& name) { return std::hash<std::string>{}(name); }
// The word at that index of memory with that seed.
inline std::uint64_t wordAt(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t word = (seed ^ index) * 0x9e3779b97f4a7c15U;
  return word ^ (word >> 29U);
}
inline void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  auto* const words = reinterpret_cast<std::uint64_t*>(bytes.data());
  for (std::uint64_t i = 0; i < bytes.size() / sizeof *words; ++i) words[i] = wordAt(seed, i);
}
// The number of words that are not those of fill(), which began `first` words before.
inline std::uint64_t wrong(std::span<const std::byte> bytes, std::uint64_t seed,
                           std::uint64_t first = 0) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(bytes.data());
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < bytes.size() / sizeof *words; ++i)
    count += words[i] != wordAt(seed, first + i) ? 1 : 0;
  return count;
}

}  // namespace viaduct::testing::published
