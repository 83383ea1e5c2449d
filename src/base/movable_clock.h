// A steady clock that a test can move forward instead of waiting. It also runs on with real time,
// so that a loop that polls for some time ends. Threads: any.
#pragma once

#include <viaduct/deadline.h>

#include <atomic>

namespace viaduct::base {

class MovableClock {
 public:
  Clock::time_point now() const { return Clock::now() + ahead(); }
  Duration ahead() const { return Duration(ahead_.load(std::memory_order_relaxed)); }
  // Pollers of this clock notice the move within a millisecond.
  void advance(Duration by) { ahead_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  std::atomic<Duration::rep> ahead_{0};
};

}  // namespace viaduct::base
