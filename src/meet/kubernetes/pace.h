// The limit of one client's requests: 5 a second, and 10 at once after a rest. API servers are
// shared, and these are the limits of Kubernetes' own client. Threads: any.
#pragma once

#include <viaduct/deadline.h>

#include <algorithm>
#include <mutex>

namespace viaduct::meet::kubernetes {

class Pace {
 public:
  static constexpr std::chrono::milliseconds kEach{200};
  static constexpr int kAtOnce = 10;

  // Returns the time of the next request, and counts it.
  Clock::time_point next(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    const auto when = std::max(now, full_at_ - (kAtOnce - 1) * kEach);
    full_at_ = std::max(full_at_, now) + kEach;
    return when;
  }

 private:
  std::mutex mutex_;
  Clock::time_point full_at_ = {};  // when kAtOnce requests may go at once again
};

}  // namespace viaduct::meet::kubernetes
