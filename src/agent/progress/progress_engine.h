// The progress engine runs an agent's event loop. A user thread that polls or waits runs ("drives")
// it, so that a wake-up is one hop. Otherwise the agent's progress thread runs it. Threads: call
// from any. docs/threads.md.
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

#include "agent/progress/agent_lock.h"
#include "agent/progress/progress_states.h"
#include "base/attempt.h"
#include "base/fd.h"
#include "base/poller.h"

namespace viaduct::agent {

// The engine calls these functions with the agent's lock held, except runCallbacks(), runRails()
// and hasNews().
class Progressable {
 public:
  virtual ~Progressable() = default;
  virtual bool progress() = 0;  // one round; true: something moved
  // True: no event will tell when progress() has work, so it has to be called without a pause.
  virtual bool busy() const = 0;
  // Something runs whose end may depend on a peer that wants this processor.
  virtual bool awaitsPeers() const = 0;
  // The number of busy rails that run without the lock.
  virtual unsigned busyRails() const = 0;
  // Runs the busy rails once. If other threads run all of them, waits until one is free. Call it
  // without the lock. True: there were any.
  virtual bool runRails() = 0;
  virtual bool hasNews() const = 0;  // rails have completions or events, which progress() applies
  // Handlers of the poller may change what rails use. So they run while rails are stopped.
  virtual void stopRails() = 0;
  virtual void startRails() = 0;
  // progress() also reads memory that other processes write. After allowWakeups(), such a write
  // wakes the poller. False: a write came before, so call progress() again. After
  // suppressWakeups(), a thread calls progress() all the time, so a writer need not wake the
  // poller.
  virtual bool allowWakeups() = 0;
  virtual void suppressWakeups() = 0;
  virtual bool wakeupsSuppressed() const = 0;
  virtual void callLoop() = 0;  // has a user's loop that watches eventFd() poll once more
  virtual bool owesCallbacks() const = 0;
  virtual void runCallbacks() = 0;  // runs the owed callbacks; call it without the lock
};

class ProgressEngine {
 public:
  // For `clock` see Poller::open().
  static Result<std::unique_ptr<ProgressEngine>> open(Progressable& target, Duration spin,
                                                      const base::MovableClock* clock = nullptr);
  ~ProgressEngine();
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  AgentLock& lock() { return lock_; }
  base::Poller& poller() { return *poller_; }

  // Starts the progress thread, and helpers that run rails.
  Status start(unsigned helpers = 0);
  void stop();  // joins these threads; not from a callback

  // One round of progress, without blocking. True: something moved.
  bool poll();
  // Makes progress until `done` returns true or `until` has passed, and returns the last answer of
  // `done`. Calls `done` with the lock held, any number of times. `until` is a time of the steady
  // clock. If `watchers` is not null and the thread has a base::Attempt, the call does not block.
  // The watchers are used with the lock held.
  bool wait(const std::function<bool()>& done, Clock::time_point until,
            base::Watchers* watchers = nullptr);
  // wait() with the lock already held. The thread releases it while it blocks, runs rails or runs
  // callbacks.
  bool waitHeld(const std::function<bool()>& done, Clock::time_point until,
                base::Watchers* watchers = nullptr) VIADUCT_REQUIRES(lock_);
  // Call it at the start of a post. It makes progress once in kPostsPerProgress calls. Otherwise a
  // thread that posts small copies without a pause would hardly leave the lock to the progress
  // thread, and heartbeats would stop.
  void progressNowAndThen() VIADUCT_REQUIRES(lock_) {
    if (++posts_since_progress_ >= kPostsPerProgress) progressNow();
  }
  // Have the progress thread take over: work was started, or callbacks are owed. takeOverSoon() is
  // for a user thread, which may come back within kUserExpected. takeOverNow() is for all others.
  void takeOverSoon(Clock::time_point now) VIADUCT_REQUIRES(lock_);
  void takeOverNow() VIADUCT_REQUIRES(lock_);
  // Wakes waiting threads, because their condition may have changed. No event tells the driving
  // thread of a change by another thread, such as one that runs callbacks.
  void changed() VIADUCT_REQUIRES(lock_) {
    if (followers_ > 0) followers_wake_.notify_all();
    if (driver_sleeps_) poke();
  }

 private:
  ProgressEngine(Progressable& target, Duration spin) : target_(target), spin_(spin) {}
  bool handleEvents(Clock::time_point now, Clock::time_point block_until) VIADUCT_REQUIRES(lock_);
  Duration askEvery() const VIADUCT_REQUIRES(lock_);
  bool progressOnce(Clock::time_point now) VIADUCT_REQUIRES(lock_);
  bool makeProgress() VIADUCT_REQUIRES(lock_);
  void progressToo() VIADUCT_REQUIRES(lock_);
  bool drive(Clock::time_point now, Clock::time_point block_until,
             const std::function<bool()>& done) VIADUCT_REQUIRES(lock_);
  void callBack() VIADUCT_REQUIRES(lock_);
  void waitBeside(Clock::time_point now, Clock::time_point spin_until, Clock::time_point until)
      VIADUCT_REQUIRES(lock_);
  void follow(Clock::time_point until) VIADUCT_REQUIRES(lock_);
  bool yieldsAfter(Clock::time_point now, bool moved) VIADUCT_REQUIRES(lock_);
  void yieldLock() VIADUCT_REQUIRES(lock_);
  void stopDriving(bool again) VIADUCT_REQUIRES(lock_);
  void runProgressThread() VIADUCT_EXCLUDES(lock_);
  void takeLock() VIADUCT_ACQUIRE(lock_);
  void sleepOutside() VIADUCT_REQUIRES(lock_);
  void runHelper() VIADUCT_EXCLUDES(lock_);
  void callHelpers();
  void arm(bool on) VIADUCT_REQUIRES(lock_);
  void poke() VIADUCT_REQUIRES(lock_);
  void silence() VIADUCT_UNCHECKED;  // the poller calls it, and the lock is held then
  void call();
  void callAsleep();
  void afterProgress() VIADUCT_REQUIRES(lock_);
  void progressNow() VIADUCT_REQUIRES(lock_);
  // True: work is left that only progress() or a timer continues.
  bool leavesWork() const VIADUCT_REQUIRES(lock_);
  bool userExpected(Clock::time_point now) const {
    return now < user_expected_until_.load(std::memory_order_relaxed);
  }
  bool backsOff() const {
    return thread_state_.load(std::memory_order_relaxed) == ProgressThread::kBacksOff;
  }
  bool step(ProgressThread::Event event);
  void expectUser(Clock::time_point now) {
    user_expected_until_.store(now + kUserExpected, std::memory_order_relaxed);
  }

  // A user thread that polled or waited within this time is expected back, and the progress thread
  // keeps off. The time is short, so that a thread that stopped polling delays peers little.
  static constexpr Duration kUserExpected = std::chrono::milliseconds(1);
  // The progress thread tries for the lock this often, yielding in between, before it blocks on it.
  static constexpr int kLockTries = 100;
  // This number of posts takes about 40 us if the posts are small. It takes 8 ms for the largest
  // posts that the posting thread copies itself.
  static constexpr unsigned kPostsPerProgress = 256;
  // Asking the poller is a system call of about a microsecond. So it is asked no more often than
  // this. kAskWhileSuppressed is for the time while notes are read from memory, kAskBusy for that
  // while rails are busy.
  static constexpr Duration kAskWhileSuppressed = std::chrono::microseconds(1);
  static constexpr Duration kAskBusy = std::chrono::microseconds(10);
  // A thread that polls again within kPollLoop does nothing else. Once such polls have moved
  // nothing for kYieldAfter, the thread yields its processor. kYieldAfter is longer than most waits
  // for a peer that has its own processor. If other threads want this processor, each yield can
  // cost a time slice of milliseconds.
  static constexpr Duration kPollLoop = std::chrono::microseconds(10);
  static constexpr Duration kYieldAfter = std::chrono::microseconds(50);

  Progressable& target_;
  const Duration spin_;
  std::unique_ptr<base::Poller> poller_;
  // The progress thread sleeps on this epoll, which contains the poller's. While a user thread
  // sleeps on the poller itself, the poller is disarmed in here, so that an event wakes one thread
  // and not two. No timer descriptor is used, because setting one costs 8 us in a virtual machine
  // (docs/measured/wake-up.md).
  base::Fd outside_;
  base::Fd poke_;  // an eventfd in the poller: wakes any thread that sleeps on it
  base::Fd call_;  // an eventfd in outside_: wakes the progress thread
  AgentLock lock_;
  std::condition_variable_any followers_wake_;
  std::atomic<Clock::time_point> user_expected_until_ = Clock::time_point::min();
  // The progress thread changes it without the lock while it sleeps or backs off.
  std::atomic<ProgressThread::State> thread_state_ = ProgressThread::kWorks;
  int followers_ VIADUCT_GUARDED_BY(lock_) = 0;    // waiting threads that do not run the loop
  bool driven_ VIADUCT_GUARDED_BY(lock_) = false;  // a waiting thread runs the loop
  bool driver_sleeps_ VIADUCT_GUARDED_BY(lock_) = false;  // the driver has released the lock
  // An event of the poller wakes the progress thread.
  bool armed_ VIADUCT_GUARDED_BY(lock_) = false;
  bool poked_ VIADUCT_GUARDED_BY(lock_) = false;
  bool round_wanted_ VIADUCT_GUARDED_BY(lock_) = false;  // the next round resets it
  bool stopping_ VIADUCT_GUARDED_BY(lock_) = false;
  unsigned posts_since_progress_ VIADUCT_GUARDED_BY(lock_) = 0;  // calls of progressNowAndThen()
  Clock::time_point asked_ VIADUCT_GUARDED_BY(lock_) = {};       // when the poller was last asked
  Clock::time_point polled_at_
      VIADUCT_GUARDED_BY(lock_) = {};                          // the last round of poll() or wait()
  Clock::time_point moved_at_ VIADUCT_GUARDED_BY(lock_) = {};  // last move, or begin of the loop
  // The time at which the progress thread's sleep ends by itself, and that of a waiting thread.
  Clock::time_point progress_until_ VIADUCT_GUARDED_BY(lock_) = Clock::time_point::max();
  Clock::time_point driver_until_ VIADUCT_GUARDED_BY(lock_) = Clock::time_point::max();
  std::thread thread_;
  // Helpers sleep on this futex while no rail is busy.
  std::atomic<std::uint32_t> helpers_bell_{0};
  std::atomic<bool> helpers_end_{false};
  std::atomic<unsigned> helpers_asleep_{0};
  std::vector<std::thread> helpers_;
};

}  // namespace viaduct::agent
