#include "agent/agent_lock.h"

#include <chrono>
#include <thread>

#include "base/thread_number.h"

namespace viaduct::agent {

// A thread takes its cell and then reads the flag. An exclusive owner sets the flag and then reads
// the cells. All four operations are sequentially consistent. So the thread sees the flag, or the
// owner sees the taken cell.
unsigned AgentLock::enter() {
  const unsigned cell = base::threadNumber() % kCells;
  if (cell < used_.load(std::memory_order_relaxed) && take(cell)) {
    if (!exclusive_wanted_.load()) return cell;
    cells_[cell].taken.store(false, std::memory_order_release);
  }
  return enterAfterOthers(cell);
}

// While this thread holds the mutex, no thread can take the lock exclusively, so any free cell will
// do.
unsigned AgentLock::enterAfterOthers(unsigned cell) {
  lockMutex();
  const std::lock_guard none_exclusive(exclusive_, std::adopt_lock);
  for (;; std::this_thread::yield())
    for (unsigned tries = 0; tries < kCells; ++tries, cell = (cell + 1) % kCells) {
      use(cell);
      if (take(cell)) return cell;
    }
}

void AgentLock::waitForMutex() {
  ++waiting_;
  exclusive_.lock();
  --waiting_;
  ++served_;
}

// A thread that counts as waiting while this one has the mutex gets it after the unlock.
void AgentLock::giveWay() {
  if (waiting_.load(std::memory_order_relaxed) == 0) return;
  const unsigned served = served_.load();
  unlock();
  while (served_.load() == served) std::this_thread::yield();
  lock();
}

void AgentLock::use(unsigned cell) {
  unsigned used = used_.load();
  while (used <= cell && !used_.compare_exchange_weak(used, cell + 1)) {
  }
}

// A shared section ends soon, unless the system has preempted its thread.
void AgentLock::waitForCells(unsigned used) {
  constexpr int kYields = 100;
  constexpr std::chrono::microseconds kPause{20};
  for (unsigned cell = 0; cell < used; ++cell)
    for (int looks = 0; cells_[cell].taken.load(); ++looks)
      if (looks < kYields)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kPause);
}

}  // namespace viaduct::agent
