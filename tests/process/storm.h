// A transfer that is posted over and over, so that faults fall into the middle of a post. Threads:
// one at a time.
#pragma once

#include <viaduct/transfer.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace viaduct::testing {

class Storm {
 public:
  explicit Storm(Transfer& transfer) : thread_([this, &transfer] { run(transfer); }) {}
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;
  ~Storm() { end(); }

  // Waits until `posts` posts are done; false if the transfer failed before.
  bool finished(std::uint64_t posts) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= posts || failure_; });
    return done_ >= posts;
  }
  std::uint64_t done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  // Ends the storm after the current post. Returns the number of posts that were not refused.
  std::uint64_t end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return accepted_;
  }
  // Waits for the error that ends the storm.
  std::optional<Error> failure(Deadline until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until.at(), [&] { return failure_.has_value(); });
    return failure_;
  }

 private:
  void run(Transfer& transfer) {
    while (!stop_) {
      Status ended = transfer.post();
      if (ended) {
        ++accepted_;
        ended = transfer.wait();
      }
      const std::lock_guard lock(mutex_);
      if (ended)
        ++done_;
      else
        failure_ = ended.error();
      changed_.notify_all();
      if (!ended) return;
    }
  }

  std::atomic<bool> stop_ = false;
  std::uint64_t accepted_ = 0;  // the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t done_ = 0;
  std::optional<Error> failure_;
  std::thread thread_;
};

}  // namespace viaduct::testing
