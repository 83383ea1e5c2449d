// Counts the threads that are inside a process's memory, in words that its owner and the copying
// threads share. Threads: any, in any process that maps it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/thread_number.h"

namespace viaduct::local {

// A copying thread enters before each chunk and leaves after it. The owner can
//  - turn() the gate, and wait for the threads that entered before. Later threads have a separate
//    count, and see the withdrawals from before the turn.
//  - fence() the gate for good. No thread enters any more, and empty() is true once all have left.
// Each word has a cache line, so that threads do not wait for each other's. Every step on a word is
// a read-modify-write of that word, so the order is never in doubt. An entry is either counted in
// the value that turn() or fence() saw there, or it is later and sees their effect.
class Gate {
 public:
  struct Pass {
    std::uint64_t unit = 0;
    std::size_t word = 0;
    explicit operator bool() const { return unit != 0; }
  };

  // An empty pass means that the gate is fenced.
  Pass enter() {
    const std::size_t index = base::threadNumber() % kWords;
    std::atomic<std::uint64_t>& counts = lines_[index].word;
    std::uint64_t word = counts.load(std::memory_order_relaxed);
    std::uint64_t unit = 0;
    do {
      if ((word & kFence) != 0) return {};
      unit = (word & kPhase) != 0 ? kSecond : kFirst;
    } while (!counts.compare_exchange_weak(word, word + unit));
    return {unit, index};
  }
  // The copied bytes are visible to a thread that finds the gate empty. Non-temporal stores need
  // their own barrier before.
  void leave(Pass pass) { lines_[pass.word].word.fetch_sub(pass.unit); }

  // The owner calls these. Pass turn()'s result to left(), and call turn() again only after left()
  // is true. Otherwise new entries share a counter with old ones, and left() cannot tell them
  // apart.
  using Leaving = std::uint64_t;
  Leaving turn() {
    std::uint64_t before = 0;  // its phase bit is the same in all words
    for (Line& line : lines_) before = line.word.fetch_xor(kPhase);
    return (before & kPhase) != 0 ? kSecondCount : kFirstCount;
  }
  bool left(Leaving who) const {
    for (const Line& line : lines_)
      if ((line.word.load() & who) != 0) return false;
    return true;
  }
  void fence() {
    for (Line& line : lines_) line.word.fetch_or(kFence);
  }
  bool empty() const { return left(kFirstCount | kSecondCount); }

 private:
  static constexpr std::uint64_t kFirst = 1, kSecond = std::uint64_t{1} << 28U;
  static constexpr std::uint64_t kFirstCount = kSecond - 1, kSecondCount = kFirstCount << 28U;
  static constexpr std::uint64_t kPhase = std::uint64_t{1} << 62U;
  static constexpr std::uint64_t kFence = std::uint64_t{1} << 63U;
  static constexpr std::size_t kWords = 8;
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "the words live in two processes");

  struct alignas(64) Line {
    std::atomic<std::uint64_t> word{0};
  };
  std::array<Line, kWords> lines_;
};

}  // namespace viaduct::local
