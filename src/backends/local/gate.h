// Counts the threads that are inside a process's memory, in one word that its owner and the copying
// threads share. Threads: any, in any process that maps it.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::local {

// A copying thread enters before each chunk and leaves after it. The owner can
//  - turn() the gate, and wait for the threads that entered before. Later ones have a separate
//    count, and see what the owner had withdrawn before the turn;
//  - fence() the gate for good: no thread enters any more, and empty() tells when all have left.
// Every step is a read-modify-write of the one word, so the order is never in doubt. An entry is
// either counted in the value that turn() or fence() saw, or it is later and sees their effect.
class Gate {
 public:
  struct Pass {
    std::uint64_t unit = 0;
    explicit operator bool() const { return unit != 0; }
  };

  // An empty pass means that the gate is fenced.
  Pass enter() {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    std::uint64_t unit = 0;
    do {
      if ((word & kFence) != 0) return {};
      unit = (word & kPhase) != 0 ? kSecond : kFirst;
    } while (!word_.compare_exchange_weak(word, word + unit));
    return {unit};
  }
  // The copied bytes are visible to a thread that finds the gate empty. Non-temporal stores need
  // their own barrier before.
  void leave(Pass pass) { word_.fetch_sub(pass.unit); }

  // For the owner. Pass turn()'s result to left(), and call turn() again only after left() is true.
  // Otherwise new entries share a counter with old ones, and left() cannot tell them apart.
  using Leaving = std::uint64_t;
  Leaving turn() {
    const std::uint64_t before = word_.fetch_xor(kPhase);
    return (before & kPhase) != 0 ? kSecondCount : kFirstCount;
  }
  bool left(Leaving who) const { return (word_.load() & who) == 0; }
  void fence() { word_.fetch_or(kFence); }
  bool empty() const { return left(kFirstCount | kSecondCount); }

 private:
  static constexpr std::uint64_t kFirst = 1, kSecond = std::uint64_t{1} << 28U;
  static constexpr std::uint64_t kFirstCount = kSecond - 1, kSecondCount = kFirstCount << 28U;
  static constexpr std::uint64_t kPhase = std::uint64_t{1} << 62U;
  static constexpr std::uint64_t kFence = std::uint64_t{1} << 63U;
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "the word lives in two processes");

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace viaduct::local
