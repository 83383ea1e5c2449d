// Waits for file descriptors and timers. Threads: under the owner's lock, except block(), which any
// number of threads call without it.
#pragma once

#include <sys/epoll.h>
#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

namespace viaduct::base {

class Poller {
 public:
  using Handler = std::function<void(std::uint32_t events)>;  // EPOLLIN, EPOLLOUT, ...
  using Id = std::uint64_t;                                   // 0: none

  static Result<std::unique_ptr<Poller>> open();
  ~Poller();

  // Level-triggered, unless EPOLLET is among the events. A handler may watch, change and forget any
  // descriptor, its own included.
  Result<Id> watch(int fd, std::uint32_t events, Handler handler);
  Status change(Id id, std::uint32_t events);
  void forget(Id id);  // before its fd is closed; no handler runs for it afterwards

  // Runs `handler` once, not before `when`. After forgetTimer it does not run.
  Id at(Clock::time_point when, std::function<void()> handler);
  void forgetTimer(Id id);
  Clock::time_point nextTimer() const;  // time_point::max(): none

  // Readable while an event is pending, so that a thread can wait for a poller and something else.
  int fd() const;
  // The timeout that epoll_wait needs to sleep until then: milliseconds, -1 for ever.
  static int waitFor(Clock::time_point until);
  // Waits for events up to `until`; spurious returns happen. Pass the events to handle().
  using Events = std::array<epoll_event, 64>;
  int block(Events& into, Clock::time_point until) const;
  // Runs the handlers of these events and of due timers. Returns true if any ran.
  bool handle(const Events& events, int count, Clock::time_point now);
  // The time of the last handle(). It is near enough to now for the work that follows, and costs no
  // clock reading.
  Clock::time_point handledAt() const { return handled_at_; }

 private:
  Poller();
  bool runTimers(Clock::time_point now);
  struct State;
  std::unique_ptr<State> state_;
  Clock::time_point handled_at_{};
};

}  // namespace viaduct::base
