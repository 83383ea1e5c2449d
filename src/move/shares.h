// Chooses among the classes of works that wait: urgent before normal before background. A lower
// class that waits gets at least one part in sixteen of the bytes of higher ones. docs/priority.md
// Threads: one at a time.
#pragma once

#include <viaduct/transfer.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace viaduct::move {

// The most bytes of a background work that are served at a time. A higher class waits for no more.
inline constexpr std::uint64_t kBackgroundTurn = std::uint64_t{256} << 10U;

class Shares {
 public:
  // The class to serve next. Bit i of `waiting` is set if class i waits; at least one bit is set.
  std::size_t next(unsigned waiting) const {
    for (std::size_t i = kPriorities - 1; i > 0; --i)
      if ((waiting >> i & 1U) != 0 && owed_[i] >= kBackgroundTurn) return i;
    return static_cast<std::size_t>(std::countr_zero(waiting));
  }
  // Counts `bytes` bytes of a class as served, while the classes of `waiting` waited.
  void served(Priority priority, std::uint64_t bytes, unsigned waiting) {
    const auto which = static_cast<std::size_t>(priority);
    owed_[which] -= std::min(owed_[which], bytes);
    for (std::size_t i = which + 1; i < kPriorities; ++i)
      if ((waiting >> i & 1U) != 0) owed_[i] += bytes / kShare;
  }

 private:
  static constexpr std::uint64_t kShare = 16;
  std::array<std::uint64_t, kPriorities> owed_ = {};  // bytes
};

}  // namespace viaduct::move
