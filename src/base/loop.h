// A poller with a thread that sleeps in it. Threads: any; what hangs on the poller is used with
// hold(), and its handlers run with it held.
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

  // `after_turn` runs when handlers have run.
  static Result<std::unique_ptr<Loop>> start(const char* name,
                                             std::function<void()> after_turn = {},
                                             const MovableClock* clock = nullptr);
  ~Loop() { stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Held hold() { return Held(mutex_); }
  Poller& poller() { return *poller_; }
  void wake();  // after a timer was set by another thread than its own
  void stop();  // from then on no handler runs; not with hold(), not from a handler

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
