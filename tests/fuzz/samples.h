// Valid inputs that a fuzz target offers its driver, to be changed. Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace viaduct::fuzz {

using Sample = std::vector<std::uint8_t>;

std::vector<Sample> samples();

inline Sample sampleOf(std::span<const std::byte> bytes) {
  Sample out;
  for (const std::byte byte : bytes) out.push_back(std::to_integer<std::uint8_t>(byte));
  return out;
}

}  // namespace viaduct::fuzz
