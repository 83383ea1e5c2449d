// Copies to and from memory of this process that may be unmapped: the kernel copies, and reports an
// error.
// Threads: one at a time per object.
#pragma once

#include <sys/uio.h>
#include <viaduct/result.h>

#include <cstddef>
#include <span>

#include "base/shared_memory.h"

namespace viaduct::base {

// A memcpy to or from memory that is not mapped would end the process. This copy costs a
// system call instead (docs/measured/memory.md).
class CheckedCopy {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{80} << 10U;

  static Result<CheckedCopy> open();
  CheckedCopy() = default;  // every copy() fails

  // Fills `to`, at most IOV_MAX pieces, from as many bytes at `from`, at most kMostBytes. False: a
  // part of `to` is not writable. Then any of the other bytes may have been written.
  [[nodiscard]] bool copy(std::span<const iovec> to, const std::byte* from) const;
  // Fills `to` from pieces of as many bytes, at most kMostBytes. False: a part of `from` is not
  // readable.
  [[nodiscard]] bool fetch(std::byte* to, std::span<const iovec> from) const;

  // The buffer of kMostBytes that the kernel copies into and out of. copy() and fetch() overwrite
  // it. A caller that works on the bytes in this buffer saves a copy.
  std::span<std::byte> room() const { return {bounce_.data(), bounce_.size()}; }
  // Copies from the front of `from` to room() at `at`, at most `most` bytes. Returns the number of
  // copied bytes, which may be less; 0: the first byte is not readable.
  std::size_t collect(std::span<const iovec> from, std::size_t at, std::size_t most) const;
  // Fills `to` from room() at `at`. False: a part of `to` is not writable, as for copy().
  [[nodiscard]] bool fill(std::span<const iovec> to, std::size_t at) const;

 private:
  explicit CheckedCopy(SharedMemory bounce) : bounce_(std::move(bounce)) {}

  SharedMemory bounce_;  // the kernel copies out of its file, and into it
};

}  // namespace viaduct::base
