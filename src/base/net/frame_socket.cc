#include "base/net/frame_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

namespace viaduct::base {
namespace {

// The most received fds that may wait for the rest of their frame. An honest peer sends at most
// those of one frame.
constexpr std::size_t kMaxWaitingFds = 2 * kMaxFrameFds;

// Waiting bytes are kept in spans of about this size, which are freed once they are sent. One call
// sends several spans.
constexpr std::size_t kSpanBytes = std::size_t{64} << 10U;
constexpr std::size_t kSpansPerCall = 16;

void collect(msghdr& message, std::vector<Fd>& into) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      into.emplace_back(fd);
    }
  }
}

Error fdsLost() {
  return {.code = Code::kExhausted,
          .operation = "recvmsg",
          .detail = "file descriptors from the peer could not be received",
          .cause = "this process has reached its limit of open files, or the peer sent too many",
          .remedy = "raise the limit (ulimit -n)"};
}

// Returns the number of accepted bytes; 0 if the socket is full.
Result<std::size_t> sendSome(int socket, std::span<iovec> parts, std::span<const Fd> fds) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFrameFds * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    for (std::size_t i = 0; i < fds.size(); ++i) {
      const int fd = fds[i].get();
      std::memcpy(CMSG_DATA(rights) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
  return systemError(Code::kPeerLost, "sendmsg", errno);
}

iovec part(ByteSpan bytes) {
  return {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
}

}  // namespace

Result<FrameReader::Read> FrameReader::read(int socket) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFrameFds * sizeof(int))> control;
  const auto space = decoder_.space();
  iovec into{.iov_base = space.data(), .iov_len = space.size()};
  msghdr message{};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  if (fds_welcome_) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Read{};
  if (got < 0) return systemError(Code::kPeerLost, "recvmsg", errno);
  if (got == 0) return Read{.ended = true};
  const auto bytes = static_cast<std::size_t>(got);
  decoder_.wrote(bytes);
  if (fds_welcome_) collect(message, fds_);
  if ((message.msg_flags & MSG_CTRUNC) != 0 || fds_.size() > kMaxWaitingFds) return fdsLost();
  return Read{.bytes = bytes, .more = bytes == space.size()};
}

bool FrameReader::takeFds(std::size_t count, std::vector<Fd>& out) {
  if (count > fds_.size()) return false;
  const auto end = fds_.begin() + static_cast<std::ptrdiff_t>(count);
  std::move(fds_.begin(), end, std::back_inserter(out));
  fds_.erase(fds_.begin(), end);
  return true;
}

Status FrameWriter::write(int socket, std::uint8_t type, ByteSpan head, ByteSpan body,
                          std::vector<Fd> fds) {
  if (!sealer_.encrypts()) {
    const FrameSealer::Header header = sealer_.seal(type, head, body, fds.size());
    return writeParts(socket, header, head, body, std::move(fds));
  }
  encrypted_.assign(head.begin(), head.end());
  encrypted_.insert(encrypted_.end(), body.begin(), body.end());
  const auto header = sealer_.encrypt(type, encrypted_, fds.size());
  if (!header)
    return Error{.code = Code::kUnsupported,
                 .operation = "send",
                 .detail = "a frame could not be encrypted",
                 .cause = "libcrypto failed"};
  Status written = writeParts(socket, *header, encrypted_, {}, std::move(fds));
  if (encrypted_.capacity() > kSpanBytes) encrypted_ = {};
  return written;
}

Status FrameWriter::writeParts(int socket, const FrameSealer::Header& header, ByteSpan head,
                               ByteSpan body, std::vector<Fd> fds) {
  std::size_t done = 0;
  if (queue_.empty()) {
    std::array parts{part(header), part(head), part(body)};
    VIADUCT_TRY(done, sendSome(socket, parts, fds));
  }
  if (!fds.empty() && done == 0) queue_.push_back({.fds = std::move(fds)});
  for (const ByteSpan bytes : {ByteSpan(header), head, body}) {
    const std::size_t gone = std::min(done, bytes.size());
    keep(bytes.subspan(gone));
    done -= gone;
  }
  return Ok{};
}

Status FrameWriter::write(int socket, std::uint8_t type, Shared shared) {
  const ByteSpan payload = *shared.payload;
  const FrameSealer::Header header = sealer_.sealDigest(type, payload.size(), shared.digest);
  std::size_t done = 0;
  if (queue_.empty()) {
    std::array parts{part(header), part(payload)};
    VIADUCT_TRY(done, sendSome(socket, parts, {}));
  }
  const std::size_t gone = std::min(done, header.size());
  keep(ByteSpan(header).subspan(gone));
  done -= gone;
  if (done == payload.size()) return Ok{};
  if (queue_.empty()) begin_ = done;
  if (shared.counts) unsent_ += payload.size() - done;
  queue_.push_back({.shared = std::move(shared.payload), .counts = shared.counts});
  return Ok{};
}

void FrameWriter::keep(ByteSpan bytes) {
  if (bytes.empty()) return;
  if (queue_.empty() || queue_.back().shared || queue_.back().own.size() >= kSpanBytes)
    queue_.emplace_back();
  Bytes& into = queue_.back().own;
  into.insert(into.end(), bytes.begin(), bytes.end());
  unsent_ += bytes.size();
}

Status FrameWriter::flush(int socket) {
  while (!queue_.empty()) {
    std::array<iovec, kSpansPerCall> parts{};
    std::size_t count = 0;
    for (const Span& span : queue_) {
      if (count == parts.size() || (count > 0 && !span.fds.empty())) break;
      parts[count] = part(span.bytes().subspan(count == 0 ? begin_ : 0));
      ++count;
    }
    VIADUCT_TRY(const std::size_t done,
                sendSome(socket, std::span(parts).first(count), queue_.front().fds));
    if (done == 0) return Ok{};
    queue_.front().fds.clear();
    sent(done);
  }
  return Ok{};
}

void FrameWriter::sent(std::size_t bytes) {
  while (bytes > 0) {
    const Span& first = queue_.front();
    const std::size_t gone = std::min(bytes, first.bytes().size() - begin_);
    if (first.counts) unsent_ -= gone;
    begin_ += gone;
    bytes -= gone;
    if (begin_ < first.bytes().size()) return;
    queue_.pop_front();
    begin_ = 0;
  }
}

}  // namespace viaduct::base
