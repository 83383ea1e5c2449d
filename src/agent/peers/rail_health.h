// Counts the failures of one rail of a link. A rail that fails again and again is set aside for a
// time that doubles, and then tried again. Threads: under the agent's lock.
#pragma once

#include <viaduct/deadline.h>

#include <algorithm>
#include <chrono>

#include "base/poller.h"

namespace viaduct::agent {

class RailHealth {
 public:
  static constexpr int kFailures = 3;  // until the rail is set aside; each within kCalm of the last
  static constexpr Duration kCalm = std::chrono::seconds(30);
  static constexpr Duration kFirst = std::chrono::seconds(1), kLongest = std::chrono::seconds(60);
  // One event fails all running transfers, and the connections of a rail one after the other. So
  // failures within this time count as one.
  static constexpr Duration kSameFailure = std::chrono::seconds(1);

  // `clock` has the time of the agent. It outlives the object.
  explicit RailHealth(const base::Poller& clock) : clock_(&clock) {}

  // Called in each post over several rails, so it reads the clock only for a rail that was set
  // aside.
  bool isSetAside() const { return was_set_aside_ && isSetAside(clock_->now()); }
  bool isSetAside(Clock::time_point now) const { return now < until_; }
  // The length of the last time that it was set aside. Grows while the rail goes on failing.
  Duration time() const { return time_; }

  // Counts a failure of the rail. True: it is set aside from now on.
  bool failed(Clock::time_point now) {
    if (was_set_aside_ || failures_ > 0) {
      if (now - last_ < kSameFailure || isSetAside(now)) return false;
      if (now - std::max(last_, until_) > kCalm) *this = RailHealth(*clock_);
    }
    last_ = now;
    if (++failures_ < kFailures && !was_set_aside_) return false;
    was_set_aside_ = true;
    time_ = std::clamp(time_ * 2, kFirst, kLongest);
    until_ = now + time_;
    return true;
  }

 private:
  const base::Poller* clock_;
  int failures_ = 0;
  bool was_set_aside_ = false;
  Clock::time_point last_ = Clock::time_point::min(), until_ = Clock::time_point::min();
  Duration time_{0};
};

}  // namespace viaduct::agent
