// Lets an event loop call functions that may block: such a call returns at once and says that it
// would have blocked. The loop is told when to call again. A blocking function names the Watchers
// of its condition. Threads: see each class.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace viaduct::base {

// An object that is told of a change. The call comes from any thread, with locks held, so it must
// be short.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void changed() = 0;
};

// The watchers that wait for the next change of one condition, such as a peer's state. Threads:
// under the lock that guards that condition.
class Watchers {
 public:
  void add(const std::shared_ptr<Watcher>& watcher);
  // Tells all watchers, and forgets them.
  void tell() {
    if (!list_.empty()) [[unlikely]]
      tellAll();
  }

 private:
  void tellAll();

  std::vector<std::weak_ptr<Watcher>> list_;
  std::size_t sweep_at_ = 8;  // the size at which the list drops the watchers that are gone
};

// While an Attempt lives, calls of its thread that would block return at once, as if their time had
// passed. `watcher` is told of the next change of the condition for which such a call would have
// waited. Threads: the one that made the Attempt.
class Attempt {
 public:
  explicit Attempt(std::shared_ptr<Watcher> watcher)
      : watcher_(std::move(watcher)), outer_(std::exchange(current_, this)) {}
  ~Attempt() { current_ = outer_; }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // True: a call would have blocked, so the error of that call is not final.
  bool wouldBlock() const { return would_block_; }

  // A function calls this before it blocks, while it holds the lock that guards `watchers`. True:
  // this thread has an Attempt, so the function must return instead.
  static bool refuses(Watchers& watchers) {
    if (current_ == nullptr) [[likely]]
      return false;
    current_->would_block_ = true;
    watchers.add(current_->watcher_);
    return true;
  }

 private:
  // Not inline: the Python module beside a shared library would have a second one.
  static constinit thread_local Attempt* current_;
  const std::shared_ptr<Watcher> watcher_;
  Attempt* const outer_;
  bool would_block_ = false;
};

}  // namespace viaduct::base
