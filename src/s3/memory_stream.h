// The bytes of one request, which lie in pieces of the user's memory. Threads: one at a time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/checked_copy.h"

namespace viaduct::s3 {

class MemoryStream {
 public:
  // `copy` outlives the stream. The memory may be unmapped at any time.
  explicit MemoryStream(const base::CheckedCopy& copy) : copy_(copy) {}

  void append(std::uint64_t address, std::uint64_t bytes);
  std::uint64_t size() const { return size_; }
  std::uint64_t position() const { return position_; }
  void seek(std::uint64_t position);

  // put() and get() move the position. False: a part of the memory is gone or protected.
  [[nodiscard]] bool put(const std::byte* from, std::size_t bytes);  // at most what is left
  // Fills as much of `into` as there is left, and says how much.
  [[nodiscard]] bool get(std::byte* into, std::size_t room, std::size_t& got);

 private:
  std::vector<iovec> next(std::size_t most) const;
  void advance(std::size_t bytes);

  const base::CheckedCopy& copy_;
  std::vector<iovec> pieces_;
  std::uint64_t size_ = 0, position_ = 0;
  std::size_t piece_ = 0, offset_ = 0;  // where position_ lies: a piece, and an offset in it
};

}  // namespace viaduct::s3
