// Progress lines for the user during a long wait: after 2 s, then every 10 s. Each has the error
// with which the wait would end now, and the time left if the wait has a limit. Threads: one.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <functional>
#include <string>
#include <utility>

namespace viaduct::base {

using SayWaiting = std::function<void(const std::string& line)>;

class Waiting {
 public:
  static constexpr std::chrono::seconds kFirst{2}, kEvery{10};

  // Without `say` the wait is silent. `until`: the time at which the caller gives up.
  Waiting(SayWaiting say, Clock::time_point until)
      : say_(std::move(say)),
        until_(until),
        due_(say_ ? Clock::now() + kFirst : Clock::time_point::max()) {}

  // The time of the next tell(); Clock::time_point::max() for a silent wait.
  Clock::time_point due() const { return due_; }
  bool isDue() const { return Clock::now() >= due_; }
  // `so_far`: the error with which the wait would end now.
  void tell(const Error& so_far);

 private:
  const SayWaiting say_;
  const Clock::time_point until_;
  Clock::time_point due_;
};

}  // namespace viaduct::base
