// Lets a call say that it would block, in the place of blocking: an event loop then goes on, and is
// told when to call again. A function that waits for a thing names the thing's Watchers. Threads:
// see each class.
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

// The watchers that wait for the next change of one thing. Threads: under the lock of the thing.
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
// passed. `watcher` is told of the next change of the thing that such a call waits for. Threads:
// the one that made the Attempt.
class Attempt {
 public:
  explicit Attempt(std::shared_ptr<Watcher> watcher)
      : watcher_(std::move(watcher)), outer_(std::exchange(current_, this)) {}
  ~Attempt() { current_ = outer_; }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // True: a call would have blocked, so the error of that call is not final.
  bool wouldBlock() const { return would_block_; }

  // A function calls this before it blocks, with the lock of the thing. True: it must not block.
  static bool refuses(Watchers& watchers) {
    if (current_ == nullptr) [[likely]]
      return false;
    current_->would_block_ = true;
    watchers.add(current_->watcher_);
    return true;
  }

 private:
  static inline thread_local Attempt* current_ = nullptr;
  const std::shared_ptr<Watcher> watcher_;
  Attempt* const outer_;
  bool would_block_ = false;
};

}  // namespace viaduct::base
