// SIGINT and SIGTERM as a stop flag, or as the end of a pause. Threads: the main one, before it
// starts others.
#pragma once

#include <signal.h>

#include <chrono>

#include "base/stop.h"

namespace viaduct::app {

// From this call on, either signal sets the flag. A second signal of the same kind ends the process
// at once.
const base::StopFlag& stopOnSignals();

// For a command that repeats something until either signal ends it. From the constructor on, both
// signals wait for comesWithin().
class EndingSignals {
 public:
  EndingSignals();
  // Waits for either signal, at most for `time`. Returns whether a signal has arrived.
  bool comesWithin(std::chrono::nanoseconds time) const;

 private:
  sigset_t signals_ = {};
};

}  // namespace viaduct::app
