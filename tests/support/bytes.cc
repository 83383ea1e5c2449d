#include "support/bytes.h"

#include <algorithm>

#include "base/random.h"

namespace viaduct::testing {

std::size_t countOther(std::span<const std::byte> bytes, std::byte one) {
  return bytes.size() - static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), one));
}

void fillRandom(std::span<std::byte> bytes, std::uint64_t seed) {
  base::Random random(seed);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

}  // namespace viaduct::testing
