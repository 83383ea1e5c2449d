// A small number for each thread that asks, to spread threads over places. Threads: any.
#pragma once

#include <atomic>

namespace viaduct::base {

// Counts up: only the remainder by a number of places is of use.
inline unsigned threadNumber() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace viaduct::base
