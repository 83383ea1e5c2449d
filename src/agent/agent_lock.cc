#include "agent/agent_lock.h"

#include <chrono>
#include <thread>

#include "base/thread_number.h"

namespace viaduct::agent {

// Each entry is a read-modify-write of its cell and then reads `is_wanted_alone_`; who wants it
// alone writes that and then reads the cells. All of it in one order, so one sees the other.
unsigned AgentLock::enter() {
  const unsigned cell = base::threadNumber() % kCells;
  if (cell < used_.load(std::memory_order_relaxed) && take(cell)) {
    if (!is_wanted_alone_.load()) return cell;
    cells_[cell].taken.store(false, std::memory_order_release);
  }
  return enterAfterOthers(cell);
}

// While this thread has `alone_`, nobody wants the lock alone: any cell that is free will do.
unsigned AgentLock::enterAfterOthers(unsigned cell) {
  const std::lock_guard none_alone(alone_);
  for (;; cell = (cell + 1) % kCells, std::this_thread::yield()) {
    use(cell);
    if (take(cell)) return cell;
  }
}

void AgentLock::use(unsigned cell) {
  unsigned used = used_.load();
  while (used <= cell && !used_.compare_exchange_weak(used, cell + 1)) {
  }
}

// Those inside leave soon, unless the system has taken the processor from one.
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
