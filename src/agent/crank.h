// Who turns an agent's event loop: its progress thread while nobody else does, and any user thread
// that polls or waits, so that a wake-up is one hop. Threads: call from any. docs/threads.md.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/poller.h"

namespace viaduct::agent {

// What is turned. All but deliver() run with the crank's lock held.
class Turner {
 public:
  virtual ~Turner() = default;
  virtual bool turn() = 0;        // moves things along; true when something moved
  virtual bool busy() const = 0;  // only turn() makes progress now
  // Some of what turn() looks at is memory that others write. listen(): nobody will look; from now
  // on such a write wakes the poller. False: one came before that, turn again. hush(): somebody
  // turns all the time, until listen(); others need not wake the poller meanwhile.
  virtual bool listen() = 0;
  virtual void hush() = 0;
  virtual bool hushed() const = 0;
  virtual bool owesCallbacks() const = 0;
  virtual void deliver() = 0;  // runs the owed callbacks, without the lock
};

class Crank {
 public:
  static Result<std::unique_ptr<Crank>> open(Turner& turner, Duration spin);
  ~Crank();
  Crank(const Crank&) = delete;
  Crank& operator=(const Crank&) = delete;

  std::mutex& lock() { return lock_; }
  base::Poller& poller() { return *poller_; }

  void start();  // the progress thread
  void stop();   // joins it; not from a callback

  // One turn without blocking; true when something moved.
  bool poll();
  // Turns until `done` (asked with the lock held, any number of times) or `until`; says whether.
  bool wait(const std::function<bool()>& done, Clock::time_point until);
  // The same with the lock already held; released while it blocks and calls back.
  bool waitHeld(std::unique_lock<std::mutex>& held, const std::function<bool()>& done,
                Clock::time_point until);
  // With the lock held, at the start of work that is done without turning: now and then it turns. A
  // thread that posts small copies without a pause hardly ever leaves the lock to the progress
  // thread, and heartbeats would stop.
  void turnNowAndThen(std::unique_lock<std::mutex>& held) {
    if (++unturned_ >= kUnturned) turnNow(held);
  }
  // With the lock held: something was started, or is owed, whose caller may not come back.
  void takeOverSoon(Clock::time_point now);
  void takeOverNow();
  // With the lock held: something that a waiting thread may wait for has changed.
  void changed() {
    if (followers_ > 0) followers_wake_.notify_all();
  }

 private:
  using Held = std::unique_lock<std::mutex>;
  Crank(Turner& turner, Duration spin) : turner_(turner), spin_(spin) {}
  bool handleEvents(Held& held, Clock::time_point now, Clock::time_point block_until);
  Duration askEvery() const;
  bool turnOnce(Held& held, Clock::time_point now);
  bool drive(Held& held, Clock::time_point now, Clock::time_point block_until,
             const std::function<bool()>& done);
  void callBack(Held& held);
  void follow(Held& held, Clock::time_point until);
  static void letOthersHaveIt(Held& held);
  void stopDriving(bool again);
  void progress();
  void takeLock(Held& held);
  void sleepOutside(Held& held);
  void arm(bool on);
  void poke();
  void call();
  void callAside();
  void leaveTurn();
  void turnNow(Held& held);
  bool leavesWork() const;  // that only turning, or a timer, carries on
  bool claimed(Clock::time_point now) const {
    return now < claim_until_.load(std::memory_order_relaxed);
  }
  bool isAside() const { return aside_.load(std::memory_order_relaxed); }
  void claim(Clock::time_point now) { claim_until_.store(now + kClaim, std::memory_order_relaxed); }

  // A user thread that polled or waited this recently is expected back: the progress thread keeps
  // off so long, and not longer, so that a caller that stopped polling delays nobody noticeably.
  static constexpr Duration kClaim = std::chrono::milliseconds(1);
  // So often it tries for the lock, and yields in between, before it waits for it.
  static constexpr int kLockTries = 100;
  // Some 40 us of the smallest posts, and 8 ms of the largest that are copied at once.
  static constexpr unsigned kUnturned = 256;
  // Asking the poller is a system call of about a microsecond. It is asked this often while memory
  // is looked at in every turn, and while rails are busy, which are moved by turning alone.
  static constexpr Duration kAskHushed = std::chrono::microseconds(1);
  static constexpr Duration kAskBusy = std::chrono::microseconds(10);

  Turner& turner_;
  const Duration spin_;
  std::unique_ptr<base::Poller> poller_;
  // The progress thread sleeps on this, an epoll around the poller's. While a user thread sleeps on
  // the poller itself the poller is disarmed in here, so that an event wakes one thread and not
  // two. No timer is set on the way: that costs 8 us in a virtual machine
  // (docs/measured/wake-up.md).
  base::Fd outside_;
  base::Fd poke_;  // an eventfd in the poller: wakes whoever sleeps
  base::Fd call_;  // an eventfd in outside_: wakes the progress thread
  std::mutex lock_;
  std::condition_variable followers_wake_;
  // The progress thread reads the first and sets the second without the lock.
  std::atomic<Clock::time_point> claim_until_ = Clock::time_point::min();
  std::atomic<bool> aside_ = false;  // it sleeps for a moment, and looks again by itself
  // All below under the lock.
  int followers_ = 0;    // waiting threads that do not drive
  bool driven_ = false;  // a waiting thread drives
  bool armed_ = false;   // an event of the poller wakes the progress thread
  bool poked_ = false;
  bool called_ = false;  // the progress thread, to sleep aside
  bool stopping_ = false;
  unsigned unturned_ = 0;                                        // posts since the last turn
  Clock::time_point asked_{};                                    // when the poller was, last
  Clock::time_point progress_until_ = Clock::time_point::max();  // when its sleep ends by itself
  Clock::time_point driver_until_ = Clock::time_point::max();    // the same of a waiting thread
  std::thread thread_;
};

}  // namespace viaduct::agent
