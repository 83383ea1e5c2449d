// The moment by which a call has to end. Threads: plain values.
#pragma once

#include <viaduct/cxx20.h>

#include <chrono>

namespace viaduct {

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;

// A moment on the steady clock. Converts from a duration, counted from now, and from a moment, so
// that `wait(2s)` and `wait(started + 2s)` both read as they should.
class Deadline {
 public:
  template <class Rep, class Period>
  Deadline(std::chrono::duration<Rep, Period> from_now) : at_(after(from_now)) {}
  Deadline(Clock::time_point at) : at_(at) {}
  static Deadline never() { return {Clock::time_point::max()}; }

  Clock::time_point at() const { return at_; }
  bool passed(Clock::time_point now = Clock::now()) const { return now >= at_; }

 private:
  template <class Rep, class Period>
  static Clock::time_point after(std::chrono::duration<Rep, Period> wait) {
    const auto now = Clock::now();
    const bool beyond = std::chrono::duration<double>(wait) >
                        std::chrono::duration<double>(Clock::time_point::max() - now);
    return beyond ? Clock::time_point::max() : now + std::chrono::duration_cast<Duration>(wait);
  }
  Clock::time_point at_;
};

}  // namespace viaduct
