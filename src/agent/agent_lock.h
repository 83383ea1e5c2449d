// The agent's lock: a mutex over its peers, pins, plans and running transfers. Rails run beside it
// (move/rail_runner.h). Its owner can let a waiting thread go first. Threads: any.
// docs/design/0051-rails-run-beside-membership.md
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "base/mutex.h"

namespace viaduct::agent {

class VIADUCT_CAPABILITY("agent lock") AgentLock {
 public:
  using Held = std::unique_lock<AgentLock>;  // empty in a fork()ed child

  void lock() VIADUCT_ACQUIRE() {
    if (!mutex_.try_lock()) waitForMutex();
  }
  // False: another thread has the lock, or waits for it.
  bool try_lock() VIADUCT_TRY_ACQUIRE(true) { return !isWanted() && mutex_.try_lock(); }
  void unlock() VIADUCT_RELEASE() { mutex_.unlock(); }
  // Another thread waits for the lock.
  bool isWanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }
  // For the owner. If other threads wait for the lock, one of them has it first. A mutex alone
  // would not wake that thread in time.
  void giveWay() VIADUCT_REQUIRES(this) {
    if (!isWanted()) return;
    const unsigned served = served_.load();
    unlock();
    while (served_.load() == served) std::this_thread::yield();
    lock();
  }

 private:
  // A thread that counts as waiting while another one has the mutex gets it after the unlock.
  void waitForMutex() {
    ++waiting_;
    mutex_.lock();
    --waiting_;
    ++served_;
  }

  std::mutex mutex_;
  std::atomic<unsigned> waiting_{0};  // threads that wait for the mutex
  std::atomic<unsigned> served_{0};   // counts those that no longer wait
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
