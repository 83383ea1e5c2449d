#include "agent/session/outbox.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/session/frame.h"

namespace viaduct::agent {
namespace {

// The buffer that a connection keeps for the next time that the socket is full.
constexpr std::size_t kKeptCapacity = std::size_t{16} << 10U;

// Returns the number of accepted bytes; 0 if the socket is full.
Result<std::size_t> sendSome(int socket, std::span<iovec> parts, std::span<const base::Fd> fds) {
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

Status Outbox::push(int socket, ByteSpan header, ByteSpan head, ByteSpan body,
                    std::vector<base::Fd> fds) {
  std::size_t sent = 0;
  if (unsent() == 0) {
    std::array parts{part(header), part(head), part(body)};
    VIADUCT_TRY(sent, sendSome(socket, parts, fds));
    position_ += sent;
  }
  if (!fds.empty() && sent == 0) attached_.push_back({position_ + unsent(), std::move(fds)});
  for (const ByteSpan bytes : {header, head, body}) {
    const std::size_t gone = std::min(sent, bytes.size());
    keep(bytes.subspan(gone));
    sent -= gone;
  }
  return Ok{};
}

void Outbox::keep(ByteSpan bytes) {
  if (bytes.empty()) return;
  if (begin_ > bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
  }
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

Status Outbox::flush(int socket) {
  while (unsent() > 0) {
    const bool with_fds = !attached_.empty() && attached_.front().at == position_;
    const std::size_t next = with_fds ? 1 : 0;  // later fds must not be sent before their own byte
    const std::size_t until = attached_.size() > next
                                  ? static_cast<std::size_t>(attached_[next].at - position_)
                                  : unsent();
    std::array parts{part(ByteSpan(bytes_).subspan(begin_, until))};
    VIADUCT_TRY(const std::size_t sent,
                sendSome(socket, parts,
                         with_fds ? std::span<const base::Fd>(attached_.front().fds)
                                  : std::span<const base::Fd>{}));
    if (sent == 0) return Ok{};
    if (with_fds) attached_.pop_front();
    begin_ += sent;
    position_ += sent;
  }
  bytes_.clear();
  begin_ = 0;
  if (bytes_.capacity() > kKeptCapacity) base::Bytes().swap(bytes_);
  return Ok{};
}

}  // namespace viaduct::agent
