// Tells an event loop of Python which of its waits may go on. The library's threads ring, without
// the GIL. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/attempt.h"
#include "base/fd.h"

namespace viaduct::python {

// The numbers of the waits that may go on, and a descriptor that is readable while there are such
// numbers.
class Doorbell {
 public:
  static Result<std::shared_ptr<Doorbell>> open();

  int fd() const { return fd_.get(); }
  void ring(std::uint64_t wait);
  std::vector<std::uint64_t> take();

 private:
  explicit Doorbell(base::Fd fd) : fd_(std::move(fd)) {}

  const base::Fd fd_;  // an eventfd
  std::mutex mutex_;
  std::vector<std::uint64_t> rung_;
};

// One wait of a loop. Passed as `timeout`, it makes a call raise BlockingIOError where it would
// wait, and rings when the call is worth another try.
class LoopWait final : public base::Watcher {
 public:
  LoopWait(std::shared_ptr<Doorbell> bell, std::uint64_t number)
      : bell_(std::move(bell)), number_(number) {}
  void changed() override { bell_->ring(number_); }

 private:
  const std::shared_ptr<Doorbell> bell_;
  const std::uint64_t number_;
};

}  // namespace viaduct::python
