#include "base/checked_copy.h"

#include <cstring>
#include <utility>

namespace viaduct::base {

Result<CheckedCopy> CheckedCopy::open() {
  VIADUCT_TRY(auto bounce, SharedMemory::allocate(kMostBytes));
  return CheckedCopy(std::move(bounce));
}

// Uses preadv(), because process_vm_writev() pins pages and is forbidden in some containers.
bool CheckedCopy::copy(std::span<const iovec> to, const std::byte* from) const {
  std::size_t bytes = 0;
  for (const iovec& piece : to) bytes += piece.iov_len;
  if (bytes > bounce_.size()) return false;
  std::memcpy(bounce_.data(), from, bytes);
  return ::preadv(bounce_.fd(), to.data(), static_cast<int>(to.size()), 0) ==
         static_cast<ssize_t>(bytes);
}

}  // namespace viaduct::base
