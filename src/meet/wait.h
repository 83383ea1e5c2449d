// The limits of a wait for the server of a meeting place, and its texts for errors. Threads: one.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <string>

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

}  // namespace viaduct::meet
