#include "agent/agent_lock.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace viaduct::agent {
namespace {

// Threads that enter and leave shared sections without a pause. Each writes its cell's two numbers,
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

  AgentLock lock;
  struct alignas(64) Pair {
    std::uint64_t first = 0, second = 0;  // guarded by the cell, or by the exclusive owner
  };
  std::array<Pair, AgentLock::kCells> pairs;
  std::atomic<unsigned> inside{0}, most{0};

 private:
  void pass() {
    const Shared shared(lock);
    const unsigned now = ++inside;
    unsigned most_yet = most;
    while (most_yet < now && !most.compare_exchange_weak(most_yet, now)) {
    }
    Pair& pair = pairs[shared.cell()];
    ++pair.first;
    std::this_thread::yield();
    ++pair.second;
    --inside;
  }

  std::atomic<bool> over_{false};
  std::vector<std::jthread> threads_;
};

std::uint64_t sum(const Passers& passers) {
  std::uint64_t all = 0;
  for (const auto& pair : passers.pairs) all += pair.second;
  return all;
}

// If the exclusive owner ran during a shared section, it would sometimes find two unequal numbers.
TEST(AgentLock, AnExclusiveOwnerFindsNoSharedSection) {
  Passers passers(4);
  for (std::uint64_t rounds = 0, passed = 0; rounds < 1000 || passed < 1000; ++rounds) {
    std::this_thread::yield();
    const std::lock_guard exclusive(passers.lock);
    passed = sum(passers);
    ASSERT_EQ(passers.inside, 0U);
    for (const auto& pair : passers.pairs) ASSERT_EQ(pair.first, pair.second);
  }
}

TEST(AgentLock, NeitherSideStarvesTheOther) {
  Passers passers(3);
  std::uint64_t last = 0;
  for (int round = 0; round < 50; ++round) {
    std::uint64_t now = last;
    while (now == last) {
      std::this_thread::yield();  // lets the other threads in
      const std::lock_guard exclusive(passers.lock);
      now = sum(passers);
    }
    last = now;
  }
}

TEST(AgentLock, MoreThreadsThanCellsWaitForACell) {
  Passers passers(AgentLock::kCells + 8);
  for (std::uint64_t passed = 0; passed < 200;) {
    std::this_thread::yield();
    const std::lock_guard exclusive(passers.lock);
    passed = sum(passers);
  }
  EXPECT_LE(passers.most, AgentLock::kCells);
}

// The owner releases the lock for moments only. Without giveWay() they are mostly too short for a
// sleeping thread.
TEST(AgentLock, AnOwnerThatGivesWayLetsAWaitingThreadIn) {
  AgentLock lock;
  std::atomic<bool> waits{false}, got{false};
  lock.lock();
  std::jthread other([&] {
    waits = true;
    const Exclusive exclusive(lock);
    got = true;
  });
  while (!waits) std::this_thread::yield();
  for (int i = 0; i < 1'000'000 && !got; ++i) lock.giveWay();
  EXPECT_TRUE(got);
  lock.unlock();
}

TEST(AgentLock, HasOneExclusiveOwnerAtATime) {
  AgentLock lock;
  const std::lock_guard exclusive(lock);
  std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
}

TEST(AgentLock, LoweredItLetsOthersIntoSharedSectionsButHasOneOwner) {
  AgentLock lock;
  std::atomic<int> step{0};
  const auto reach = [&](int to) {
    step = to;
    step.notify_all();
  };
  const auto await = [&](int from) {
    for (int now = step; now < from; now = step) step.wait(now);
  };
  std::jthread passer([&] {
    lock.leave(lock.enter());  // a thread that has had a cell enters without the mutex
    reach(1);
    await(2);
    const unsigned cell = lock.enter();
    reach(3);
    await(4);
    lock.leave(cell);
  });
  await(1);
  const std::lock_guard exclusive(lock);
  lock.lower();
  reach(2);
  await(3);
  std::jthread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
  reach(4);
  lock.raise();
  passer.join();
}

TEST(AgentLock, TryLockWaitsForSharedSections) {
  Passers passers(2);
  for (int round = 0; round < 500; ++round) {
    std::this_thread::yield();
    const std::unique_lock exclusive(passers.lock, std::try_to_lock);
    if (!exclusive) continue;  // another thread held it for a moment
    ASSERT_EQ(passers.inside, 0U);
  }
}

}  // namespace
}  // namespace viaduct::agent
