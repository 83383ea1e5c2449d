// File descriptors and timers to wait for. Threads: everything but block() under the owner's lock;
// block() by any number of threads, without it.
#pragma once

#include <sys/epoll.h>
#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/movable_clock.h"

namespace viaduct::base {

class Poller {
 public:
  using Handler = std::function<void(std::uint32_t events)>;  // EPOLLIN, EPOLLOUT, ...
  using Id = std::uint64_t;                                   // 0: none

  // `clock`: a test's, which outlives the poller. Null: the steady clock.
  static Result<std::unique_ptr<Poller>> open(const MovableClock* clock = nullptr);
  ~Poller();

  // The time of its timers, and of everything that hangs on it.
  Clock::time_point now() const { return clock_ == nullptr ? Clock::now() : clock_->now(); }
  // A caller's deadline, on the steady clock, as a time of this poller; and back.
  Clock::time_point fromSteady(Clock::time_point at) const { return moved(at, 1); }
  Clock::time_point toSteady(Clock::time_point at) const { return moved(at, -1); }

  // Level-triggered, unless EPOLLET is among the events. A handler may watch, change and forget
  // anything, itself included.
  Result<Id> watch(int fd, std::uint32_t events, Handler handler);
  Status change(Id id, std::uint32_t events);
  void forget(Id id);  // before its fd is closed; no event of it is handled afterwards

  // Runs `handler` once, not before `when`. forgetTimer: it does not run any more.
  Id at(Clock::time_point when, std::function<void()> handler);
  void forgetTimer(Id id);
  Clock::time_point nextTimer() const;  // time_point::max(): none

  // Readable while an event waits: for waiting on a poller together with something else.
  int fd() const;
  // What epoll_wait takes for a sleep until then: milliseconds, -1 for ever.
  int waitFor(Clock::time_point until) const;
  static int milliseconds(Duration left);
  // Waits for events up to `until`; spurious returns happen. What it fills goes to handle().
  using Events = std::array<epoll_event, 64>;
  int block(Events& into, Clock::time_point until) const;
  // Runs the handlers of those events and of the timers that are due; true when any ran.
  bool handle(const Events& events, int count, Clock::time_point now);
  // Then: near enough to now for whoever is turned after it, and free.
  Clock::time_point handledAt() const { return handled_at_; }

 private:
  explicit Poller(const MovableClock* clock);
  Clock::time_point moved(Clock::time_point at, int direction) const;
  bool runTimers(Clock::time_point now);
  struct State;
  const MovableClock* const clock_;
  std::unique_ptr<State> state_;
  Clock::time_point handled_at_{};
};

}  // namespace viaduct::base
