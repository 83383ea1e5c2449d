#include "measure/run/channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace viaduct::measure {
namespace {

// How late a stop is noticed when its signal interrupts nothing.
constexpr std::chrono::milliseconds kSlice(50);

Error ended() {
  return {.code = Code::kPeerLost,
          .operation = "bench",
          .detail = "the other process of the measurement has ended"};
}

}  // namespace

Result<std::pair<Channel, Channel>> Channel::pair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0)
    return systemError(Code::kExhausted, "socketpair", errno);
  return std::pair{Channel(base::Fd(fds[0])), Channel(base::Fd(fds[1]))};
}

Status Channel::send(std::span<const std::byte> message) {
  if (message.empty() || message.size() > kMaxMessage)
    return Error{.code = Code::kInvalid,
                 .operation = "bench",
                 .detail = fmt::format("a control message of {} bytes", message.size())};
  for (;;) {
    if (::send(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL) >= 0) return Ok{};
    if (errno == EPIPE || errno == ECONNRESET) return ended();
    if (errno != EINTR) return systemError(Code::kDevice, "send", errno);
  }
}

Status Channel::waitReadable(Deadline until, const StopFlag& stop) const {
  for (;;) {
    if (stop.load()) return Error{.code = Code::kCancelled, .operation = "bench"};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until.at() - Clock::now());
    if (left.count() < 0)
      return Error{.code = Code::kTimeout,
                   .operation = "bench",
                   .detail = "the other process of the measurement does not answer"};
    pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::min(left, kSlice).count()));
    if (ready > 0) return Ok{};
    if (ready < 0 && errno != EINTR) return systemError(Code::kDevice, "poll", errno);
  }
}

Result<base::Bytes> Channel::receive(Deadline until, const StopFlag& stop) {
  VIADUCT_CHECK(waitReadable(until, stop));
  base::Bytes message(kMaxMessage);
  ssize_t got = -1;
  do {
    got = ::recv(fd_.get(), message.data(), message.size(), MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) return ended();
  if (got < 0) return systemError(Code::kDevice, "recv", errno);
  if (static_cast<std::size_t>(got) > kMaxMessage)
    return Error{.code = Code::kProtocol, .operation = "bench", .detail = "oversized message"};
  message.resize(static_cast<std::size_t>(got));
  return message;
}

}  // namespace viaduct::measure
