// The steady clock, which a test moves forward instead of waiting. It runs on by itself, so that a
// loop that polls for some time still ends. Threads: any.
#pragma once

#include <viaduct/deadline.h>

#include <atomic>

namespace viaduct::base {

class MovableClock {
 public:
  Clock::time_point now() const { return Clock::now() + ahead(); }
  Duration ahead() const { return Duration(ahead_.load(std::memory_order_relaxed)); }
  // Pollers of this clock notice it within a millisecond.
  void advance(Duration by) { ahead_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  std::atomic<Duration::rep> ahead_{0};
};

}  // namespace viaduct::base
