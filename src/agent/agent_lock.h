// The agent's lock, with two sides. A change of membership (sessions, links, pins, plans) holds it
// alone. Work on what is there (a post that is still planned, a poll of a rail) holds it beside
// others, for a bounded time; each such thread has a cell of its own, so that they share no cache
// line. Threads: any. docs/design/0021-data-path-beside-membership.md
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "base/mutex.h"

namespace viaduct::agent {

class VIADUCT_CAPABILITY("agent lock") AgentLock {
 public:
  using Held = std::unique_lock<AgentLock>;  // alone; empty in a fork()ed child
  // Threads that can work beside each other at once; more wait for a cell.
  static constexpr unsigned kCells = 32;

  // Alone. Waits for those who work beside each other, and nobody new begins meanwhile.
  void lock() VIADUCT_ACQUIRE() {
    alone_.lock();
    shut();
  }
  // False: another thread has it alone, or is about to.
  bool try_lock() VIADUCT_TRY_ACQUIRE(true) {
    if (!alone_.try_lock()) return false;
    shut();
    return true;
  }
  void unlock() VIADUCT_RELEASE() {
    is_wanted_alone_.store(false, std::memory_order_release);
    alone_.unlock();
  }

  // Beside others. Gives the thread's cell, which nobody else has until leave().
  unsigned enter() VIADUCT_ACQUIRE_SHARED();
  void leave(unsigned cell) VIADUCT_RELEASE_SHARED() {
    cells_[cell].taken.store(false, std::memory_order_release);
  }

 private:
  struct alignas(64) Cell {
    std::atomic<bool> taken{false};
  };
  bool take(unsigned cell) {
    return !cells_[cell].taken.load(std::memory_order_relaxed) &&
           !cells_[cell].taken.exchange(true);
  }
  void use(unsigned cell);
  unsigned enterAfterOthers(unsigned cell);
  void shut() {
    is_wanted_alone_.store(true);
    if (const unsigned used = used_.load(); used != 0) waitForCells(used);
  }
  void waitForCells(unsigned used);

  std::mutex alone_;  // of the one that holds it alone; others pass through to wait for that one
  alignas(64) std::atomic<bool> is_wanted_alone_{false};
  std::atomic<unsigned> used_{0};  // cells that were ever taken: the others are not looked at
  std::array<Cell, kCells> cells_;
};

// Has it alone for a scope.
class VIADUCT_SCOPED_CAPABILITY Alone {
 public:
  explicit Alone(AgentLock& lock) VIADUCT_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~Alone() VIADUCT_RELEASE() { lock_.unlock(); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  AgentLock& lock_;
};

// Works beside others for a scope.
class VIADUCT_SCOPED_CAPABILITY Beside {
 public:
  explicit Beside(AgentLock& lock) VIADUCT_ACQUIRE_SHARED(lock)
      : lock_(lock), cell_(lock.enter()) {}
  ~Beside() VIADUCT_RELEASE_GENERIC() { lock_.leave(cell_); }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  unsigned cell() const { return cell_; }

 private:
  AgentLock& lock_;
  const unsigned cell_;
};

}  // namespace viaduct::agent
