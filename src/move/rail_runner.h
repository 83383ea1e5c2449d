// Runs one rail. Threads take turns: each call of the rail is made by the thread that has the right
// to run it. A thread that does not get the right leaves its work in the inbox, for the thread that
// has it. So a post never waits for another thread's poll.
//
// A rail may call its runner in each of its functions, as rails under the agent's lock do by way of
// the agent. post() and cancel() then leave work and sinks in the inbox until the rail has
// returned, takeEnded() and busy() do as always, and run() returns false. The other functions are
// not for rails: awaitTurn(), and stop() of a rail that runs alone, would wait for themselves.
//
// Threads: any, unless a comment says otherwise. docs/design/0051-rails-run-beside-membership.md
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "core/backend.h"
#include "core/op.h"
#include "move/shares.h"

namespace viaduct::move {

// News of the rails for the agent: ops have ended, or events wait.
struct RailNews {
  std::atomic<bool> ended{false}, events{false};
  bool any() const { return ended || events; }
};

class RailRunner {
 public:
  RailRunner(core::Rail& rail, const core::Capabilities& can, RailNews& news)
      : rail_(&rail), alone_(can.side_by_side), news_(news) {}
  RailRunner(const RailRunner&) = delete;
  RailRunner& operator=(const RailRunner&) = delete;
  ~RailRunner() = default;

  // True: the rail runs without the agent's lock. Other rails call the agent in their polls.
  bool runsAlone() const { return alone_; }

  // Takes all ops of the work. Ops that the rail has no room for wait in the inbox, in the order of
  // the classes. Small work may be done inside the call. Threads: under the agent's lock.
  void post(const core::Work& work);
  // Stops all works of this sink, now or before the rail runs again.
  void cancel(const core::Sink& sink);
  // Makes progress for a bounded time. False: another thread runs the rail.
  bool run();
  // Sleeps until the thread that runs the rail has ended its turn.
  void awaitTurn() { right_.awaitDrop(); }
  // True: there is work, so call run(). Threads: under the agent's lock.
  bool busy() const VIADUCT_UNCHECKED {
    if (!alone_) return left_ != 0 || (rail_ != nullptr && rail_->busy());
    return busy_.load(std::memory_order_relaxed) || left_.load(std::memory_order_relaxed) != 0;
  }
  // Appends the ops that have ended. Threads: under the agent's lock.
  void takeEnded(core::Completions& out);

  // stop() and start() let a thread change links and pins. In between, only this thread calls the
  // rail, its links and its backend. Threads: under the agent's lock.
  void stop();
  void start();
  // The calls below need a stopped rail.
  void handleEvents();  // the events that polls have found
  // Call it before the link closes: appends the link's works in the inbox to `out`.
  void giveBack(const core::Link& link, core::Completions& out);
  void forgetRail() { rail_ = nullptr; }  // its backend ends, and nothing runs any more

 private:
  // The works of one class, in their order.
  struct WorkQueue {
    std::vector<core::Work> works;
    std::size_t next = 0;  // earlier works are with the rail
    bool empty() const { return next == works.size(); }
    void push(const core::Work& work) {
      constexpr std::size_t kMany = 1024;
      if (empty() || (next >= kMany && next >= works.size() / 2)) {
        works.erase(works.begin(), works.begin() + static_cast<std::ptrdiff_t>(next));
        next = 0;
      }
      works.push_back(work);
    }
    core::Work pop() { return works[next++]; }
    // Other works may have been pushed since `work` was popped.
    void putBack(const core::Work& work) {
      if (next == 0)
        works.insert(works.begin(), work);
      else
        works[--next] = work;
    }
  };
  // The right to run the rail.
  class VIADUCT_CAPABILITY("rail") Right {
   public:
    bool tryTake() VIADUCT_TRY_ACQUIRE(true) {
      int free = kFree;
      const bool taken = state_.load(std::memory_order_relaxed) == kFree &&
                         state_.compare_exchange_strong(free, kTaken);
      assert(!taken || setOwner(std::this_thread::get_id()));
      return taken;
    }
    void take() VIADUCT_ACQUIRE();
    void drop() VIADUCT_RELEASE() {
      assert(setOwner({}));
      if (state_.exchange(kFree) == kAwaited) state_.notify_all();
    }
    void awaitDrop() {
      assert(!isMine() && "the thread that runs a rail waits for itself");
      int taken = kTaken;
      if (state_.compare_exchange_strong(taken, kAwaited) || taken == kAwaited)
        state_.wait(kAwaited);
    }

   private:
    static constexpr int kFree = 0, kTaken = 1, kAwaited = 2;  // kAwaited: taken, and threads sleep
    std::atomic<int> state_{kFree};
#ifndef NDEBUG
    bool setOwner(std::thread::id owner) {
      owner_ = owner;
      return true;
    }
    bool isMine() const { return owner_ == std::this_thread::get_id(); }
    std::atomic<std::thread::id> owner_ = std::thread::id();
#endif
  };

  bool give(const core::Work& work) VIADUCT_REQUIRES(right_);
  void leave(const core::Work& work);
  void runLeft();
  bool handOver() VIADUCT_REQUIRES(right_);
  bool takeNext(core::Work& out, unsigned classes) VIADUCT_EXCLUDES(inbox_lock_);
  bool putBack(const core::Work& rest) VIADUCT_EXCLUDES(inbox_lock_);
  void cancelLeft() VIADUCT_REQUIRES(right_);
  template <class Such>
  void takeOut(Such such, const Error& why, core::Completions& out) VIADUCT_REQUIRES(inbox_lock_);
  unsigned waiting() const VIADUCT_REQUIRES(inbox_lock_);
  void count() VIADUCT_REQUIRES(inbox_lock_);
  void tell(core::Completions& some);
  void publish() VIADUCT_REQUIRES(right_);

  core::Rail* rail_;  // guarded by the right
  const bool alone_;
  RailNews& news_;
  Right right_;
  std::atomic<bool> busy_{false};
  std::atomic<std::size_t> left_{0};  // the number of works and sinks below
  base::Mutex inbox_lock_;
  std::array<WorkQueue, kPriorities> inbox_ VIADUCT_GUARDED_BY(inbox_lock_);
  Shares shares_ VIADUCT_GUARDED_BY(inbox_lock_);
  // The rail has to stop the works of these sinks that it has taken. Works of these sinks in the
  // inbox were posted after the cancel, and stay.
  std::vector<const core::Sink*> cancelled_ VIADUCT_GUARDED_BY(inbox_lock_);
  core::Completions some_ VIADUCT_GUARDED_BY(right_);
  base::Mutex ended_lock_;
  core::Completions ended_ VIADUCT_GUARDED_BY(ended_lock_);
};

}  // namespace viaduct::move
