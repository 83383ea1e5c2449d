// The states of an agent's progress thread, as a table. Threads: plain values.
#pragma once

#include <array>
#include <cstdint>

#include "base/transitions.h"

namespace viaduct::agent {

struct ProgressThread {
  enum State : std::uint8_t {
    kWorks,
    kSleeps,    // in epoll
    kCalled,    // in epoll, but another thread has begun to wake it
    kBacksOff,  // asleep for a millisecond at most, because user threads make the progress
  };
  enum Event : std::uint8_t { kSleep, kCall, kBackOff, kWork };

  static constexpr auto kSteps = std::to_array<base::Transition<State, Event>>({
      {base::anyOf(kWorks), kSleep, kSleeps, "no work is left, or a waiting thread drives"},
      {base::anyOf(kSleeps), kCall, kCalled,
       "a user thread leaves work, or polls in a loop so that peers no longer wake this agent"},
      {base::anyOf(kWorks, kSleeps, kCalled, kBacksOff), kBackOff, kBacksOff,
       "a user thread that polled or waited is expected back"},
      {base::anyOf(kWorks, kSleeps, kCalled, kBacksOff), kWork, kWorks,
       "an event, a timer or a call woke it, or no user thread came back"},
  });
};

}  // namespace viaduct::agent
