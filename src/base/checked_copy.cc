#include "base/checked_copy.h"

#include <algorithm>
#include <array>
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

std::size_t CheckedCopy::collect(std::span<const iovec> from, std::size_t at,
                                 std::size_t most) const {
  constexpr std::size_t kPieces = 64;
  std::array<iovec, kPieces> pieces;
  std::size_t count = 0;
  most = std::min(most, bounce_.size() - at);
  for (; count < std::min(from.size(), kPieces) && most > 0; ++count) {
    pieces[count] = {from[count].iov_base, std::min(from[count].iov_len, most)};
    most -= pieces[count].iov_len;
  }
  const ssize_t got =
      ::pwritev(bounce_.fd(), pieces.data(), static_cast<int>(count), static_cast<off_t>(at));
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

bool CheckedCopy::fill(std::span<const iovec> to, std::size_t at) const {
  return ::preadv(bounce_.fd(), to.data(), static_cast<int>(to.size()), static_cast<off_t>(at)) ==
         static_cast<ssize_t>(sizeOf(to));
}

}  // namespace viaduct::base
