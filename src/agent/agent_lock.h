// The agent's lock. Changes of membership (sessions, links, pins, plans) hold it exclusively. Posts
// of copies on this host hold it shared, for a bounded time, and so do polls of rails that are
// side_by_side. Each thread in a shared section has a cell of its own, so that threads share no
// cache line. Threads: any. docs/design/0021-data-path-beside-membership.md
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "base/mutex.h"

namespace viaduct::agent {

class VIADUCT_CAPABILITY("agent lock") AgentLock {
 public:
  using Held = std::unique_lock<AgentLock>;  // an exclusive hold; empty in a fork()ed child
  // The most threads in shared sections; further threads wait for a cell.
  static constexpr unsigned kCells = 32;

  // Exclusive. Waits until the shared sections have ended; no new section begins meanwhile.
  void lock() VIADUCT_ACQUIRE() {
    lockMutex();
    shut();
  }
  // Waits for shared sections as well. False: another thread has the lock exclusively, waits for
  // it, or waits for a cell.
  bool try_lock() VIADUCT_TRY_ACQUIRE(true) {
    if (waiting_.load(std::memory_order_relaxed) != 0 || !exclusive_.try_lock()) return false;
    shut();
    return true;
  }
  void unlock() VIADUCT_RELEASE() {
    lower();
    exclusive_.unlock();
  }
  // For the exclusive owner. If other threads wait for the lock, one of them has it first. A mutex
  // alone would not wake that thread in time.
  void giveWay() VIADUCT_REQUIRES(this);
  // For the exclusive owner. From lower() to raise() it is in a shared section: others may run
  // beside it, but no other thread can take the lock exclusively. This costs less than unlock(),
  // a shared section and lock().
  void lower() { exclusive_wanted_.store(false, std::memory_order_release); }
  void raise() { shut(); }

  // Shared. Returns the cell, which no other thread has until leave().
  unsigned enter() VIADUCT_ACQUIRE_SHARED();
  void leave(unsigned cell) VIADUCT_RELEASE_SHARED() {
    cells_[cell].taken.store(false, std::memory_order_release);
  }
  // True while a thread waits for the lock exclusively, or has it. A long shared section leaves
  // soon after that.
  const std::atomic<bool>& exclusiveWanted() const { return exclusive_wanted_; }

 private:
  struct alignas(64) Cell {
    std::atomic<bool> taken{false};
  };
  bool take(unsigned cell) {
    return !cells_[cell].taken.load(std::memory_order_relaxed) &&
           !cells_[cell].taken.exchange(true);
  }
  void lockMutex() {
    if (!exclusive_.try_lock()) waitForMutex();
  }
  void waitForMutex();
  void use(unsigned cell);
  unsigned enterAfterOthers(unsigned cell);
  void shut() {
    exclusive_wanted_.store(true);
    if (const unsigned used = used_.load(); used != 0) waitForCells(used);
  }
  void waitForCells(unsigned used);

  std::mutex exclusive_;  // held by the exclusive owner, or by a thread that waits for a cell
  std::atomic<unsigned> waiting_{0};  // threads that wait for `exclusive_`
  std::atomic<unsigned> served_{0};   // counts those that no longer wait
  alignas(64) std::atomic<bool> exclusive_wanted_{false};
  std::atomic<unsigned> used_{0};  // no thread has ever taken a cell from this index on
  std::array<Cell, kCells> cells_;
};

// Holds the lock exclusively for a scope.
class VIADUCT_SCOPED_CAPABILITY Exclusive {
 public:
  explicit Exclusive(AgentLock& lock) VIADUCT_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~Exclusive() VIADUCT_RELEASE() { lock_.unlock(); }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

 private:
  AgentLock& lock_;
};

// A shared section for a scope.
class VIADUCT_SCOPED_CAPABILITY Shared {
 public:
  explicit Shared(AgentLock& lock) VIADUCT_ACQUIRE_SHARED(lock)
      : lock_(lock), cell_(lock.enter()) {}
  ~Shared() VIADUCT_RELEASE_GENERIC() { lock_.leave(cell_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  unsigned cell() const { return cell_; }
  // Ends the section and begins another, after the threads that wait for the lock exclusively.
  // Links, pins and plans may have changed meanwhile.
  void giveWay() VIADUCT_UNCHECKED {
    lock_.leave(cell_);
    cell_ = lock_.enter();
  }

 private:
  AgentLock& lock_;
  unsigned cell_;
};

}  // namespace viaduct::agent
