// Cuts ops into reads and writes that the kernel accepts for O_DIRECT. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace viaduct::file {

inline constexpr std::uint32_t kMostBytes = 1U << 20U;  // of one read or write

// The rules of O_DIRECT for one file.
struct Alignment {
  bool direct = false;  // false: the page cache, and no rules
  std::uint32_t offset = 1, memory = 1;
  std::uint64_t down(std::uint64_t at) const { return at / offset * offset; }
  std::uint64_t up(std::uint64_t at) const { return down(at + offset - 1); }
};

struct Cut {
  std::uint32_t bytes = 0;
  bool bounces = false;  // through an aligned buffer
  friend bool operator==(const Cut&, const Cut&) = default;
};

// Cuts the first piece off `left` bytes between this address in memory and this offset in the file.
// A piece bounces only if O_DIRECT cannot move it directly. The blocks that contain a piece have at
// most kMostBytes.
inline Cut nextCut(std::uint64_t address, std::uint64_t offset, std::uint64_t left,
                   const Alignment& rules) {
  const auto piece = [](std::uint64_t bytes, bool bounces) {
    return Cut{static_cast<std::uint32_t>(bytes), bounces};
  };
  if (!rules.direct) return piece(std::min<std::uint64_t>(left, kMostBytes), false);
  const std::uint64_t head = rules.up(offset) - offset;
  const bool fits = (address + head) % rules.memory == 0;
  if (fits && head == 0) {
    const std::uint64_t middle = std::min<std::uint64_t>(rules.down(left), kMostBytes);
    return middle != 0 ? piece(middle, false) : piece(left, true);
  }
  if (fits) return piece(std::min(left, head), true);
  // The last block of the piece is whole, unless the op ends inside it.
  return piece(std::min(left, rules.down(offset) + kMostBytes - offset), true);
}

}  // namespace viaduct::file
