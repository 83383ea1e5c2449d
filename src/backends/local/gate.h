// Who is inside somebody's memory: words that the memory's owner and those who copy share.
// Threads: any, in any process that maps it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/thread_number.h"

namespace viaduct::local {

// Whoever copies enters before and leaves after each chunk. The owner can
//  - turn() it and wait for those who entered before; newcomers are not held up (they are counted
//    apart, and see what the owner has withdrawn before the turn);
//  - fence() it for good: nobody enters any more, and empty() says whether the last one is out.
// There are several words, a cache line each, so that threads do not wait for each other's. Every
// step on a word is a read-modify-write of it, so their order is never in doubt: an entry is either
// counted in what turn() or fence() saw there, or it came later and sees what they did.
class Gate {
 public:
  struct Pass {
    std::uint64_t unit = 0;
    std::size_t word = 0;
    explicit operator bool() const { return unit != 0; }
  };

  // An empty pass: the gate is fenced.
  Pass enter() {
    const std::size_t index = words_ == kWords ? base::threadNumber() % kWords : 0;
    std::atomic<std::uint64_t>& counts = lines_[index].word;
    std::uint64_t word = counts.load(std::memory_order_relaxed);
    std::uint64_t unit = 0;
    do {
      if ((word & kFence) != 0) return {};
      unit = (word & kPhase) != 0 ? kSecond : kFirst;
    } while (!counts.compare_exchange_weak(word, word + unit));
    return {unit, index};
  }
  // What was copied is visible to whoever finds the gate empty; non-temporal stores need their own
  // barrier first.
  void leave(Pass pass) { lines_[pass.word].word.fetch_sub(pass.unit); }

  // For the owner. Pass turn()'s result to left(), and call turn() again only after left() is true.
  // Otherwise new entries share a counter with old ones, and left() cannot tell them apart.
  using Leaving = std::uint64_t;
  Leaving turn() {
    std::uint64_t before = 0;  // the same in all words
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
  // The page is zero where an owner has the first word alone: others would not be looked at.
  alignas(64) std::size_t words_ = kWords;
};

}  // namespace viaduct::local
