// Aligned buffers for pieces that O_DIRECT cannot move. Threads: one at a time.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/file/cut.h"
#include "base/shared_memory.h"

namespace viaduct::file {

class Bounce {
 public:
  // The memory is allocated with the first buffer.
  explicit Bounce(std::uint32_t buffers) : buffers_(buffers) {}

  Status open() {
    if (memory_) return Ok{};
    VIADUCT_TRY(memory_, base::SharedMemory::allocate(std::uint64_t{buffers_} * kMostBytes));
    for (std::uint32_t i = buffers_; i > 0; --i) free_.push_back(i - 1);
    return Ok{};
  }
  std::span<std::byte> memory() const { return memory_.bytes(); }
  bool empty() const { return free_.empty(); }
  std::uint32_t take() {
    const std::uint32_t buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void give(std::uint32_t buffer) { free_.push_back(buffer); }
  std::byte* at(std::uint32_t buffer) const {
    return memory_.data() + std::uint64_t{buffer} * kMostBytes;
  }

  // Copies by a system call, which reports unmapped memory without a signal. False: the memory is
  // not mapped.
  bool copyOut(std::uint32_t buffer, std::uint64_t from, std::byte* to, std::size_t bytes) const {
    return copied(::pread(memory_.fd(), to, bytes, place(buffer, from)), bytes);
  }
  bool copyIn(std::uint32_t buffer, std::uint64_t to, const std::byte* from,
              std::size_t bytes) const {
    return copied(::pwrite(memory_.fd(), from, bytes, place(buffer, to)), bytes);
  }

 private:
  static bool copied(ssize_t moved, std::size_t bytes) {
    return moved == static_cast<ssize_t>(bytes);
  }
  static off_t place(std::uint32_t buffer, std::uint64_t at) {
    return static_cast<off_t>(std::uint64_t{buffer} * kMostBytes + at);
  }

  const std::uint32_t buffers_;
  base::SharedMemory memory_;
  std::vector<std::uint32_t> free_;
};

}  // namespace viaduct::file
