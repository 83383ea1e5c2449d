#include "s3/memory_stream.h"

#include <algorithm>

namespace viaduct::s3 {
namespace {

constexpr std::size_t kMostPieces = 1024;  // IOV_MAX of Linux

}  // namespace

void MemoryStream::append(std::uint64_t address, std::uint64_t bytes) {
  size_ += bytes;
  if (!pieces_.empty()) {
    iovec& last = pieces_.back();
    if (reinterpret_cast<std::uintptr_t>(last.iov_base) + last.iov_len == address) {
      last.iov_len += bytes;
      return;
    }
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): only here a registered address becomes a pointer
  pieces_.push_back({reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes});
}

void MemoryStream::seek(std::uint64_t position) {
  piece_ = offset_ = 0;
  position_ = 0;
  advance(std::min(position, size_));
}

void MemoryStream::advance(std::size_t bytes) {
  position_ += bytes;
  while (bytes != 0) {
    const std::size_t step = std::min(bytes, pieces_[piece_].iov_len - offset_);
    offset_ += step;
    bytes -= step;
    if (offset_ != pieces_[piece_].iov_len) continue;
    ++piece_;
    offset_ = 0;
  }
}

// The next pieces, as many as one copy takes.
std::vector<iovec> MemoryStream::next(std::size_t most) const {
  std::vector<iovec> out;
  most = std::min(most, base::CheckedCopy::kMostBytes);
  std::size_t offset = offset_;
  for (std::size_t i = piece_; i < pieces_.size() && most != 0 && out.size() < kMostPieces; ++i) {
    const std::size_t bytes = std::min(most, pieces_[i].iov_len - offset);
    out.push_back({static_cast<std::byte*>(pieces_[i].iov_base) + offset, bytes});
    most -= bytes;
    offset = 0;
  }
  return out;
}

bool MemoryStream::put(const std::byte* from, std::size_t bytes) {
  while (bytes != 0) {
    const auto pieces = next(bytes);
    std::size_t step = 0;
    for (const iovec& piece : pieces) step += piece.iov_len;
    if (step == 0 || !copy_.copy(pieces, from)) return false;
    advance(step);
    from += step;
    bytes -= step;
  }
  return true;
}

bool MemoryStream::get(std::byte* into, std::size_t room, std::size_t& got) {
  got = 0;
  while (got != room && position_ != size_) {
    const auto pieces = next(room - got);
    std::size_t step = 0;
    for (const iovec& piece : pieces) step += piece.iov_len;
    if (!copy_.fetch(into + got, pieces)) return false;
    advance(step);
    got += step;
  }
  return true;
}

}  // namespace viaduct::s3
