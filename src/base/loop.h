// A thread that sleeps in a poller. Threads: any. A user of poller() calls hold() first. The loop's
// thread holds the same lock while handlers run.
#pragma once

#include <viaduct/result.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/poller.h"

namespace viaduct::base {

class Loop {
 public:
  using Held = std::unique_lock<std::mutex>;

  // `after_turn` runs after each round of handlers.
  static Result<std::unique_ptr<Loop>> start(const char* name,
                                             std::function<void()> after_turn = {},
                                             const MovableClock* clock = nullptr);
  ~Loop() { stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Held hold() { return Held(mutex_); }
  Poller& poller() { return *poller_; }
  void wake();  // call it if a thread other than the loop's has set a timer
  void stop();  // no handler runs afterwards; do not call it with hold() or from a handler

 private:
  Loop() = default;
  Status open(const MovableClock* clock);
  void run();

  std::mutex mutex_;
  std::unique_ptr<Poller> poller_;
  Fd bell_;
  std::function<void()> after_turn_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace viaduct::base
