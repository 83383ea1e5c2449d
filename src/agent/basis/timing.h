// Times transfers for the histogram of latencies. Reading the clock twice takes 50 ns, a third of
// the smallest post. If transfers follow each other fast, a random few are timed, and each counts
// for several. Threads: one at a time.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/statistics.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/random.h"

namespace viaduct::agent {

class Timing {
 public:
  struct Timed {
    std::uint32_t times = 0;  // the number of transfers that it counts for; 0: not timed
    Clock::time_point begun = {};
  };

  // Call it once for each transfer that starts. True: this one is to be timed.
  bool isDue() { return --left_ == 0; }
  // `now`: the start of a transfer that is due.
  Timed begin(Clock::time_point now) {
    const Timed timed{.times = every_, .begun = now};
    const Duration gap = now - last_;
    if (gap < kLeastGap)
      every_ = std::min(every_ * 2, kMostSkipped);
    else if (gap > 2 * kLeastGap)
      every_ = std::max(every_ / 2, 1U);
    last_ = now;
    // A random gap, so that a program with a fixed cycle of transfers has each of them timed now
    // and then.
    left_ = 1 + static_cast<std::uint32_t>(dice_.below(2 * every_ - 1));
    return timed;
  }
  void end(const Timed& timed, Clock::time_point now) {
    latencies_.add(std::chrono::duration_cast<std::chrono::nanoseconds>(now - timed.begun),
                   timed.times);
  }
  const Latencies& latencies() const { return latencies_; }

 private:
  static constexpr Duration kLeastGap = std::chrono::microseconds(100);
  static constexpr std::uint32_t kMostSkipped = 64;

  std::uint32_t left_ = 1, every_ = 1;
  Clock::time_point last_ = {};
  base::Random dice_{1};
  Latencies latencies_ = {};
};

}  // namespace viaduct::agent
