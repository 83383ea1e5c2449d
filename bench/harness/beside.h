// Work beside a measurement. Threads: one owner, and the thread that does the work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

namespace viaduct::bench {

// Repeats a step on a thread of its own, until the Beside is destroyed.
class Beside {
 public:
  // Returns after `begun` steps.
  Beside(std::function<void()> step, std::uint64_t begun)
      : step_(std::move(step)), thread_([this](const std::stop_token& stop) {
          for (; !stop.stop_requested(); ++steps_) step_();
        }) {
    while (steps_ < begun) std::this_thread::yield();
  }
  std::uint64_t steps() const { return steps_; }

 private:
  const std::function<void()> step_;
  std::atomic<std::uint64_t> steps_{0};
  std::jthread thread_;  // last, because it uses the others
};

}  // namespace viaduct::bench
