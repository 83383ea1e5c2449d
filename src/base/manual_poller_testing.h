// A poller that a test drives by hand. Threads: one.
#pragma once

#include <viaduct/deadline.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/poller.h"

namespace viaduct::base {

class ManualPoller {
 public:
  explicit ManualPoller(const MovableClock* clock = nullptr)
      : poller_(std::move(*Poller::open(clock))) {}
  Poller& poller() { return *poller_; }
  void pollOnce(std::chrono::milliseconds block = std::chrono::milliseconds(0)) {
    Poller::Events events;
    const auto until = std::min(poller_->now() + block, poller_->nextTimer());
    const int count = poller_->block(events, until);
    poller_->handle(events, count, poller_->now());
  }
  // Polls until `until()` is true. Returns false only in place of a hang: a disk that others use
  // may need minutes for a few reads.
  template <class F>
  bool run(F until) {
    const auto end = Clock::now() + std::chrono::minutes(5);
    while (!until()) {
      if (Clock::now() > end) return false;
      pollOnce(std::chrono::milliseconds(5));
    }
    return true;
  }
  // Polls until no handler has anything to do.
  void settle() {
    Poller::Events events;
    for (int quiet = 0; quiet < 3;) {
      const int count = poller_->block(events, poller_->now() + std::chrono::milliseconds(1));
      quiet = poller_->handle(events, count, poller_->now()) ? 0 : quiet + 1;
    }
  }

 private:
  std::unique_ptr<Poller> poller_;
};

}  // namespace viaduct::base
