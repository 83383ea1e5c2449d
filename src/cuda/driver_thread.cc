#include "cuda/driver_thread.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.h"
#include "base/process_id.h"

namespace viaduct::cuda {
namespace {

// It never ends.
class DriverThread {
 public:
  using Number = std::uint64_t;  // of a piece of work, from 1 on

  // Takes the work, unless no thread can be started.
  std::optional<Number> add(std::function<void()>& work, Duration expected) {
    if (isOfAParent()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    if (!started_ && !start()) return std::nullopt;
    queue_.push_back({std::move(work), expected});
    changed_.notify_all();
    return ++added_;
  }
  bool isDone(Number number) {
    const std::lock_guard lock(mutex_);
    return done_ >= number;
  }
  bool hangs() {
    const std::lock_guard lock(mutex_);
    return done_ != begun_ && Clock::now() >= overdue_;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    const Number last = added_;
    const auto until = Clock::now() + kPatience;
    while (done_ < last) {
      const auto next = done_ == begun_ ? until : std::min(until, overdue_);
      const auto moved = [this, begun = begun_, done = done_] {
        return begun_ != begun || done_ != done;
      };
      if (!changed_.wait_until(lock, next, moved)) return;
    }
  }
  void addBell(const std::shared_ptr<EndBell>& bell) {
    const std::lock_guard lock(mutex_);
    std::erase_if(bells_, [](const auto& one) { return one.expired(); });
    bells_.push_back(bell);
  }
  // Whether the caller is one of these threads.
  static bool isHere() { return is_here_; }

 private:
  struct Job {
    std::function<void()> work;
    Duration expected = {};
  };
  // In a child of fork() there is no thread, and the mutex may stay locked.
  bool isOfAParent() const { return forks_ != base::forkGeneration(); }
  bool start() {
    const base::BlockedSignals none;
    try {
      std::thread([this] { run(); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    return started_ = true;
  }
  void run() {
    is_here_ = true;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !queue_.empty(); });
      Job job = std::move(queue_.front());
      queue_.pop_front();
      ++begun_;
      overdue_ = Clock::now() + job.expected + kPatience;
      changed_.notify_all();
      lock.unlock();
      job.work();
      job.work = nullptr;
      lock.lock();
      ++done_;
      changed_.notify_all();
      for (const auto& one : bells_)
        if (const auto bell = one.lock()) bell->ring();
    }
  }

  static thread_local bool is_here_;
  const std::uint64_t forks_ = base::forkGeneration();
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  bool started_ = false;
  std::deque<Job> queue_;
  Number added_ = 0, begun_ = 0, done_ = 0;
  Clock::time_point overdue_ = {};  // when the work that was begun last counts as hanging
  std::vector<std::weak_ptr<EndBell>> bells_;
};
thread_local bool DriverThread::is_here_ = false;

DriverThread& registrar() {
  static auto& the_thread = *new DriverThread;
  return the_thread;
}

DriverThread& ender() {
  static auto& the_thread = *new DriverThread;
  return the_thread;
}

}  // namespace

bool onRegistrar(std::function<void()> work, Duration expected) {
  return registrar().add(work, expected).has_value();
}

bool registrarHangs() { return registrar().hangs(); }

void awaitRegistrar() { registrar().wait(); }

EndNumber endLater(std::function<void()> end) {
  const auto number = DriverThread::isHere() ? std::nullopt : ender().add(end, {});
  if (!number) end();
  return number.value_or(0);
}

bool isEnded(EndNumber number) { return ender().isDone(number); }

void awaitEnds() { ender().wait(); }

void addBell(const std::shared_ptr<EndBell>& bell) {
  registrar().addBell(bell);
  ender().addBell(bell);
}

}  // namespace viaduct::cuda
