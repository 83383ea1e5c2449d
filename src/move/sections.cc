#include "move/sections.h"

#include <chrono>
#include <thread>

#include "base/thread_number.h"

namespace viaduct::move {

// A thread takes its cell and then reads the flag. A thread that shuts sets the flag and then reads
// the cells. All four operations are sequentially consistent. So the entering thread sees the flag,
// or the shutting thread sees the taken cell.
unsigned Sections::enter() {
  const unsigned cell = base::threadNumber() % kCells;
  if (cell < used_.load(std::memory_order_relaxed) && take(cell)) {
    if (!shut_wanted_.load()) return cell;
    cells_[cell].taken.store(false, std::memory_order_release);
  }
  return enterAfterOthers(cell);
}

// While this thread holds the mutex, no thread can shut the sections, so any free cell will do.
unsigned Sections::enterAfterOthers(unsigned cell) {
  const std::lock_guard none_shuts(one_shuts_);
  for (;; std::this_thread::yield())
    for (unsigned tries = 0; tries < kCells; ++tries, cell = (cell + 1) % kCells) {
      use(cell);
      if (take(cell)) return cell;
    }
}

void Sections::shut() {
  one_shuts_.lock();
  shut_wanted_.store(true);
  if (const unsigned used = used_.load(); used != 0) waitForCells(used);
}

void Sections::open() {
  shut_wanted_.store(false, std::memory_order_release);
  one_shuts_.unlock();
}

void Sections::use(unsigned cell) {
  unsigned used = used_.load();
  while (used <= cell && !used_.compare_exchange_weak(used, cell + 1)) {
  }
}

// A section ends soon, unless the system has preempted its thread.
void Sections::waitForCells(unsigned used) {
  constexpr int kYields = 100;
  constexpr std::chrono::microseconds kPause{20};
  for (unsigned cell = 0; cell < used; ++cell)
    for (int looks = 0; cells_[cell].taken.load(); ++looks)
      if (looks < kYields)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kPause);
}

}  // namespace viaduct::move
