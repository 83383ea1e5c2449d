#include "core/find_twice.h"

#include <algorithm>

namespace viaduct::core {

std::optional<std::uint32_t> findTwice(std::span<const std::uint32_t> indices,
                                       std::uint64_t count) {
  const auto descent =
      std::adjacent_find(indices.begin(), indices.end(), [](auto a, auto b) { return a >= b; });
  if (descent == indices.end()) return std::nullopt;
  constexpr std::uint64_t kBlocksPerIndex = 256;  // clearing 256 bits costs less than sorting one
  if (count / kBlocksPerIndex > indices.size()) {
    std::vector<std::uint32_t> sorted(indices.begin(), indices.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    return twice == sorted.end() ? std::nullopt : std::optional(*twice);
  }
  std::vector<std::uint64_t> seen(count / 64 + 1, 0);
  for (const std::uint32_t i : indices) {
    std::uint64_t& word = seen[i / 64];
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    if ((word & bit) != 0) return i;
    word |= bit;
  }
  return std::nullopt;
}

}  // namespace viaduct::core
