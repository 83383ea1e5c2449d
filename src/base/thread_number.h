// Numbers the threads that call it, so that callers can spread threads over slots. Threads: any.
#pragma once

#include <atomic>

namespace viaduct::base {

// Numbers only count up. Callers use the remainder by their number of slots.
inline unsigned threadNumber() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace viaduct::base
