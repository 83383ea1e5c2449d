// The progress engine runs an agent's event loop: on a user thread that polls or waits, so that a
// wake-up is one hop, and otherwise on the agent's progress thread. Threads: call from any.
// docs/threads.md.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent_lock.h"
#include "base/fd.h"
#include "base/poller.h"

namespace viaduct::agent {

// What a poll of rails beside others came to.
struct RailPass {
  bool was_busy = false;
  bool has_ended = false;  // something, which progress() is to apply
};

// The engine drives it. It calls all with the agent's lock held alone, but for
// runCallbacks() and progressBeside().
class Progressable {
 public:
  virtual ~Progressable() = default;
  virtual bool progress() = 0;    // one round; true when something moved
  virtual bool busy() const = 0;  // no event tells when to call progress() next: call it now
  // Rails that have work and that several threads may poll at once, beside each other.
  virtual unsigned busyBeside() = 0;
  virtual RailPass progressBeside() = 0;  // polls them, without the lock
  // progress() also reads memory that other processes write. After allowWakeups() such a write
  // wakes the poller; false: a write came before, so call progress() again. After suppressWakeups()
  // a thread calls progress() all the time, so a writer need not wake the poller.
  virtual bool allowWakeups() = 0;
  virtual void suppressWakeups() = 0;
  virtual bool wakeupsSuppressed() const = 0;
  virtual bool owesCallbacks() const = 0;
  virtual void runCallbacks() = 0;  // runs the owed callbacks, without the lock
};

class ProgressEngine {
 public:
  static Result<std::unique_ptr<ProgressEngine>> open(Progressable& target, Duration spin);
  ~ProgressEngine();
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  AgentLock& lock() { return lock_; }
  base::Poller& poller() { return *poller_; }

  // The progress thread, and so many that help it to poll rails beside each other.
  void start(unsigned helpers = 0);
  void stop();  // joins them; not from a callback

  // One round of progress without blocking; true when something moved.
  bool poll();
  // Makes progress until `done` (asked with the lock held, any number of times) or `until`; returns
  // the answer of `done`.
  bool wait(const std::function<bool()>& done, Clock::time_point until);
  // The same with the lock already held; released while it blocks and calls back.
  bool waitHeld(AgentLock::Held& held, const std::function<bool()>& done, Clock::time_point until);
  // With the lock held, at the start of a post: makes progress once in kPostsPerProgress calls. A
  // thread that posts small copies without a pause hardly ever leaves the lock to the progress
  // thread, and heartbeats would stop.
  void progressNowAndThen(AgentLock::Held& held) {
    if (++posts_since_progress_ >= kPostsPerProgress) progressNow(held);
  }
  // With the lock held: something was started, or is owed, whose caller may not come back.
  void takeOverSoon(Clock::time_point now);
  void takeOverNow();
  // With the lock held: something that a waiting thread may wait for has changed.
  void changed() {
    if (followers_ > 0) followers_wake_.notify_all();
  }

 private:
  using Held = AgentLock::Held;
  ProgressEngine(Progressable& target, Duration spin) : target_(target), spin_(spin) {}
  bool handleEvents(Held& held, Clock::time_point now, Clock::time_point block_until);
  Duration askEvery() const;
  bool progressOnce(Held& held, Clock::time_point now);
  bool makeProgress();
  void progressToo(Held& held);
  void runHelper();
  void callHelpers();
  bool drive(Held& held, Clock::time_point now, Clock::time_point block_until,
             const std::function<bool()>& done);
  void callBack(Held& held);
  void follow(Held& held, Clock::time_point until);
  static void yieldLock(Held& held);
  void stopDriving(bool again);
  void runProgressThread();
  void takeLock(Held& held);
  void sleepOutside(Held& held);
  void arm(bool on);
  void poke();
  void call();
  void callBackOff();
  void afterProgress();
  void progressNow(Held& held);
  bool leavesWork() const;  // that only progress(), or a timer, carries on
  bool userExpected(Clock::time_point now) const {
    return now < user_expected_until_.load(std::memory_order_relaxed);
  }
  bool backsOff() const { return backing_off_.load(std::memory_order_relaxed); }
  void expectUser(Clock::time_point now) {
    user_expected_until_.store(now + kUserExpected, std::memory_order_relaxed);
  }

  // A user thread that polled or waited this recently is expected back: the progress thread keeps
  // off so long, and not longer, so that a caller that stopped polling delays nobody noticeably.
  static constexpr Duration kUserExpected = std::chrono::milliseconds(1);
  // So often it tries for the lock, and yields in between, before it waits for it.
  static constexpr int kLockTries = 100;
  // Some 40 us of the smallest posts, and 8 ms of the largest that are copied at once.
  static constexpr unsigned kPostsPerProgress = 256;
  // Asking the poller is a system call of about a microsecond. It is asked this often while memory
  // is read in every round of progress, and while rails are busy, which send no events.
  static constexpr Duration kAskWhileSuppressed = std::chrono::microseconds(1);
  static constexpr Duration kAskBusy = std::chrono::microseconds(10);

  Progressable& target_;
  const Duration spin_;
  std::unique_ptr<base::Poller> poller_;
  // The progress thread sleeps on this, an epoll around the poller's. While a user thread sleeps on
  // the poller itself the poller is disarmed in here, so that an event wakes one thread and not
  // two. No timer is set on the way: that costs 8 us in a virtual machine
  // (docs/measured/wake-up.md).
  base::Fd outside_;
  base::Fd poke_;  // an eventfd in the poller: wakes whoever sleeps
  base::Fd call_;  // an eventfd in outside_: wakes the progress thread
  AgentLock lock_;
  std::condition_variable_any followers_wake_;
  // The progress thread reads the first and sets the second without the lock.
  std::atomic<Clock::time_point> user_expected_until_ = Clock::time_point::min();
  std::atomic<bool> backing_off_ =
      false;  // the progress thread sleeps for a moment, and looks again by itself
  // All below under the lock.
  int followers_ = 0;    // waiting threads that do not drive
  bool driven_ = false;  // a waiting thread drives
  bool armed_ = false;   // an event of the poller wakes the progress thread
  bool poked_ = false;
  bool called_ = false;  // the progress thread, to back off
  bool stopping_ = false;
  unsigned posts_since_progress_ = 0;                            // calls of progressNowAndThen()
  Clock::time_point asked_{};                                    // when the poller was, last
  Clock::time_point progress_until_ = Clock::time_point::max();  // when its sleep ends by itself
  Clock::time_point driver_until_ = Clock::time_point::max();    // the same of a waiting thread
  std::thread thread_;
  // Changes when helpers should look again; they sleep on it while no rail is busy.
  std::atomic<std::uint32_t> helpers_bell_{0};
  std::atomic<bool> helpers_end_{false};
  std::atomic<unsigned> helpers_asleep_{0};
  std::vector<std::thread> helpers_;
};

}  // namespace viaduct::agent
