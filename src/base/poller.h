// Waits for file descriptors and timers. Threads: under the owner's lock. Any number of threads
// call block(), now(), fromSteady(), toSteady() and change() without it.
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

  // `clock` is a test's clock, which outlives the poller. Null means the steady clock.
  static Result<std::unique_ptr<Poller>> open(const MovableClock* clock = nullptr);
  ~Poller();

  // The time of this poller's timers, and of all code that uses this poller.
  Clock::time_point now() const { return clock_ == nullptr ? Clock::now() : clock_->now(); }
  // Convert a caller's deadline on the steady clock to a time of this poller, and back.
  Clock::time_point fromSteady(Clock::time_point at) const { return moved(at, 1); }
  Clock::time_point toSteady(Clock::time_point at) const { return moved(at, -1); }

  // Level-triggered, unless EPOLLET is among the events. An event without a handler only ends
  // block(), for an owner that looks for the reason itself. A handler may watch, change and forget
  // any descriptor, its own included.
  Result<Id> watch(int fd, std::uint32_t events, Handler handler);
  Status change(Id id, std::uint32_t events);
  void forget(Id id);  // before its fd is closed; no handler runs for it afterwards

  // Runs `handler` once, not before `when`. After forgetTimer it does not run.
  Id at(Clock::time_point when, std::function<void()> handler);
  void forgetTimer(Id id);
  Clock::time_point nextTimer() const;  // time_point::max(): none

  // Readable while an event is pending, so that a thread can wait for a poller and something else.
  int fd() const;
  // The timeout with which epoll_wait sleeps until `until`: milliseconds, -1 for ever.
  int waitFor(Clock::time_point until) const;
  static int milliseconds(Duration left);
  // Waits for events up to `until`; spurious returns happen. Pass the events to handle().
  using Events = std::array<epoll_event, 64>;
  int block(Events& into, Clock::time_point until) const;
  // Runs the handlers of these events and of due timers. Returns true if any ran.
  bool handle(const Events& events, int count, Clock::time_point now);

 private:
  explicit Poller(const MovableClock* clock);
  Clock::time_point moved(Clock::time_point at, int direction) const;
  bool runTimers(Clock::time_point now);
  struct State;
  const MovableClock* const clock_;
  std::unique_ptr<State> state_;
};

}  // namespace viaduct::base
