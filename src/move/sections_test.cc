#include "move/sections.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace viaduct::move {
namespace {

// Threads that enter and leave sections without a pause. Each writes its cell's two numbers,
// one after the other.
class Passers {
 public:
  explicit Passers(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i)
      threads_.emplace_back([this] {
        while (!over_) pass();
      });
  }
  ~Passers() { over_ = true; }
  Passers(const Passers&) = delete;
  Passers& operator=(const Passers&) = delete;

  Sections sections;
  struct alignas(64) Pair {
    std::uint64_t first = 0,
                  second = 0;  // guarded by the cell, or by the thread that has shut the sections
  };
  std::array<Pair, Sections::kCells> pairs;
  std::atomic<unsigned> inside{0}, most{0};

 private:
  void pass() {
    const Section section(sections);
    const unsigned now = ++inside;
    unsigned most_yet = most;
    while (most_yet < now && !most.compare_exchange_weak(most_yet, now)) {
    }
    Pair& pair = pairs[section.cell()];
    ++pair.first;
    std::this_thread::yield();
    ++pair.second;
    --inside;
  }

  std::atomic<bool> over_{false};
  std::vector<std::jthread> threads_;
};

class Shut {
 public:
  explicit Shut(Sections& sections) : sections_(sections) { sections_.shut(); }
  ~Shut() { sections_.open(); }
  Shut(const Shut&) = delete;
  Shut& operator=(const Shut&) = delete;

 private:
  Sections& sections_;
};

std::uint64_t sum(const Passers& passers) {
  std::uint64_t all = 0;
  for (const auto& pair : passers.pairs) all += pair.second;
  return all;
}

// If a thread was inside shut sections, this one would sometimes find two unequal numbers.
TEST(Sections, AThreadThatShutsThemFindsNoneInside) {
  Passers passers(4);
  for (std::uint64_t rounds = 0, passed = 0; rounds < 1000 || passed < 1000; ++rounds) {
    std::this_thread::yield();
    const Shut shut(passers.sections);
    passed = sum(passers);
    ASSERT_EQ(passers.inside, 0U);
    for (const auto& pair : passers.pairs) ASSERT_EQ(pair.first, pair.second);
  }
}

TEST(Sections, NeitherSideStarvesTheOther) {
  Passers passers(3);
  std::uint64_t last = 0;
  for (int round = 0; round < 50; ++round) {
    std::uint64_t now = last;
    while (now == last) {
      std::this_thread::yield();  // lets the other threads in
      const Shut shut(passers.sections);
      now = sum(passers);
    }
    last = now;
  }
}

TEST(Sections, MoreThreadsThanCellsWaitForACell) {
  Passers passers(Sections::kCells + 8);
  for (std::uint64_t passed = 0; passed < 200;) {
    std::this_thread::yield();
    const Shut shut(passers.sections);
    passed = sum(passers);
  }
  EXPECT_LE(passers.most, Sections::kCells);
}

}  // namespace
}  // namespace viaduct::move
