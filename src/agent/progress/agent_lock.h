// The agent's lock: a mutex over its peers, pins, plans and running transfers. Rails run beside it
// (move/rail_runner.h). Its owner can let a waiting thread go first. A round of progress takes the
// lock twice, so it is one word, which costs a fifth of the instructions of std::mutex. Threads:
// any. docs/design/0051-rails-run-beside-membership.md
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/mutex.h"

namespace viaduct::agent {

class VIADUCT_CAPABILITY("agent lock") AgentLock {
 public:
  using Held = std::unique_lock<AgentLock>;  // empty in a fork()ed child

  void lock() VIADUCT_ACQUIRE() {
    if (!take()) waitForIt();
  }
  // False: another thread has the lock, or waits for it.
  bool try_lock() VIADUCT_TRY_ACQUIRE(true) { return !isWanted() && take(); }
  void unlock() VIADUCT_RELEASE() {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }
  // Another thread waits for the lock.
  bool isWanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }
  // For the owner. If other threads wait for the lock, one of them has it first. Without giveWay()
  // that thread would not wake in time.
  void giveWay() VIADUCT_REQUIRES(this) {
    if (!isWanted()) return;
    const unsigned served = served_.load();
    unlock();
    while (served_.load() == served) std::this_thread::yield();
    lock();
  }

 private:
  static constexpr int kFree = 0, kTaken = 1, kAwaited = 2;  // kAwaited: a thread may sleep

  bool take() {
    int free = kFree;
    return state_.compare_exchange_strong(free, kTaken, std::memory_order_acquire);
  }
  // While this thread counts in waiting_, try_lock() of other threads fails, and giveWay() lets
  // this thread go first.
  void waitForIt() {
    ++waiting_;
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) state_.wait(kAwaited);
    --waiting_;
    ++served_;
  }

  std::atomic<int> state_{kFree};
  std::atomic<unsigned> waiting_{0};  // threads that wait for the lock
  std::atomic<unsigned> served_{0};   // counts the waits for the lock that have ended
};

// Holds the lock for a scope.
class VIADUCT_SCOPED_CAPABILITY Exclusive {
 public:
  explicit Exclusive(AgentLock& lock) VIADUCT_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~Exclusive() VIADUCT_RELEASE() { lock_.unlock(); }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

 private:
  AgentLock& lock_;
};

}  // namespace viaduct::agent
