// Wakes the agent's thread from threads of the driver. Threads: ring() any; the rest under the
// agent's lock.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>
#include <viaduct/result.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/fd.h"

namespace viaduct::cuda {

class EndBell {
 public:
  // Opens the descriptor, at the first call.
  Status open() {
    if (fd_) return Ok{};
    fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd_) return systemError(Code::kExhausted, "eventfd", errno);
    return Ok{};
  }
  int fd() const { return fd_.get(); }

  // Writes to the descriptor before it sets the flag. In the other order, a clear() between the two
  // steps would find nothing to read, and the descriptor would stay readable.
  void ring() {
    if (rung()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
    rung_.store(true, std::memory_order_release);
  }
  bool rung() const { return rung_.load(std::memory_order_acquire); }
  // Call clear() before looking for ended batches.
  void clear() {
    if (!rung_.exchange(false, std::memory_order_acq_rel)) return;
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto heard = ::read(fd_.get(), &rings, sizeof rings);
  }

 private:
  base::Fd fd_;
  std::atomic<bool> rung_{false};
};

}  // namespace viaduct::cuda
