// The limits of a wait for the server of a meeting place, its texts for errors, and its pauses.
// Threads: one at a time.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "base/stop.h"
#include "base/waiting.h"

namespace viaduct::meet {

struct Wait {
  Clock::time_point until = {};
  const base::StopFlag* stop = nullptr;
  std::string operation = {};  // precedes the kind of place in errors
  std::string missing = {};    // names the missing value, for a timeout while the server answers
  base::Waiting* aloud = nullptr;  // reports a long wait to the user

  bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  Error cancelled() const {
    return {.code = Code::kCancelled, .operation = operation, .detail = "asked to stop"};
  }
  Error timedOut() const {
    return {.code = Code::kTimeout, .operation = operation, .detail = missing};
  }
};

// A parsed answer, or an error that names the server and the caller's operation.
template <class T>
Result<T> answerOf(const std::string& server, const Wait& wait, Result<T> parsed) {
  if (parsed) return parsed;
  Error why = std::move(parsed).error();
  if (!wait.operation.empty()) why.operation = wait.operation + ": " + why.operation;
  why.detail = server + ": " + why.detail;
  return why;
}

// Sleeps until `until`. Calls `goes_on` every 50 ms, because a signal handler may set the flag of a
// wait and wakes no thread. False: `goes_on` has ended the sleep.
template <class GoesOn>
bool sleepUntil(Clock::time_point until, GoesOn&& goes_on) {
  constexpr std::chrono::milliseconds kLook{50};
  while (goes_on()) {
    const auto now = Clock::now();
    if (now >= until) return true;
    std::this_thread::sleep_for(std::min<Duration>(kLook, until - now));
  }
  return false;
}

// A random time between 1/2 and 3/2 of this one, so that clients do not act together.
Duration jittered(Duration around);

// The pauses between the tries of one call. They are random, and grow by half each time: a call
// notices a server that has come back after about a third more than the server's absence.
class BackOff {
 public:
  BackOff(Duration first, Duration longest) : first_(first), longest_(longest) {}
  Duration next();
  void reset() { pause_ = {}; }

 private:
  const Duration first_, longest_;
  Duration pause_ = {};
};

}  // namespace viaduct::meet
