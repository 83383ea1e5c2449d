#include "agent/progress/agent_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace viaduct::agent {
namespace {

// The owner releases the lock only for moments. Without giveWay() most of these moments are too
// short for a sleeping thread to wake and take the lock.
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

TEST(AgentLock, HasOneOwnerAtATime) {
  AgentLock lock;
  const std::lock_guard exclusive(lock);
  std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
}

}  // namespace
}  // namespace viaduct::agent
