#include "base/checked_copy.h"

#include <cstring>
#include <utility>

namespace viaduct::base {
namespace {

std::size_t sizeOf(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

}  // namespace

Result<CheckedCopy> CheckedCopy::open() {
  VIADUCT_TRY(auto bounce, SharedMemory::allocate(kMostBytes));
  return CheckedCopy(std::move(bounce));
}

// Uses preadv(), because process_vm_writev() pins pages and is forbidden in some containers.
bool CheckedCopy::copy(std::span<const iovec> to, const std::byte* from) const {
  const std::size_t bytes = sizeOf(to);
  if (bytes > bounce_.size()) return false;
  std::memcpy(bounce_.data(), from, bytes);
  return ::preadv(bounce_.fd(), to.data(), static_cast<int>(to.size()), 0) ==
         static_cast<ssize_t>(bytes);
}

bool CheckedCopy::fetch(std::byte* to, std::span<const iovec> from) const {
  const std::size_t bytes = sizeOf(from);
  if (bytes > bounce_.size() || ::pwritev(bounce_.fd(), from.data(), static_cast<int>(from.size()),
                                          0) != static_cast<ssize_t>(bytes))
    return false;
  std::memcpy(to, bounce_.data(), bytes);
  return true;
}

}  // namespace viaduct::base
