#include "agent/session/inbox.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace viaduct::agent {
namespace {

// Fds whose frame has not arrived in full. An honest peer sends at most those of one frame.
constexpr std::size_t kMaxWaitingFds = 2 * kMaxFrameFds;

void collect(msghdr& message, std::deque<base::Fd>& into) {
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

}  // namespace

Result<Inbox::Read> Inbox::read(int socket) {
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

bool Inbox::takeFds(std::size_t count, std::vector<base::Fd>& out) {
  if (count > fds_.size()) return false;
  for (; count > 0; --count) {
    out.push_back(std::move(fds_.front()));
    fds_.pop_front();
  }
  return true;
}

}  // namespace viaduct::agent
