#include "meet/embedded/message_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

namespace viaduct::meet::embedded {
namespace {

// The limits of the queue of a connection whose other end does not read. They count messages, and
// payload bytes that are queued for it alone. Payloads that all members share do not count.
constexpr std::size_t kMaxQueued = 4096;
constexpr std::size_t kMaxOwnBytes = std::size_t{64} << 20U;

std::size_t ownBytes(const Packet& packet) {
  const bool shared = packet.type == Type::kFormed || packet.type == Type::kValues;
  return shared ? 0 : packet.payload.size();
}

}  // namespace

Status MessageSocket::watch(base::Poller& poller, std::function<void()> readable) {
  VIADUCT_TRY(watch_, poller.watch(socket_.get(), EPOLLIN | EPOLLRDHUP,
                                   [this, readable = std::move(readable)](std::uint32_t events) {
                                     if ((events & EPOLLOUT) != 0) static_cast<void>(flush());
                                     if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0)
                                       readable();
                                   }));
  poller_ = &poller;
  return Ok{};
}

Status MessageSocket::send(const PacketPtr& packet) {
  if (queue_.size() >= kMaxQueued || own_bytes_ + ownBytes(*packet) > kMaxOwnBytes)
    return Error{.code = Code::kBusy,
                 .operation = "send",
                 .detail = fmt::format("{} messages wait for the other end, with {} bytes for it "
                                       "alone; the limits are {} and {}",
                                       queue_.size(), own_bytes_, kMaxQueued, kMaxOwnBytes)};
  own_bytes_ += ownBytes(*packet);
  const bool first = queue_.empty();
  queue_.push_back({sealer_.seal(*packet), packet});
  return first ? flush() : Status(Ok{});
}

ssize_t MessageSocket::writeFirst() {
  Queued& next = queue_.front();
  const Bytes& payload = next.packet->payload;
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  if (sent_ < kHeaderBytes) parts[count++] = {next.header.data() + sent_, kHeaderBytes - sent_};
  const std::size_t of_payload = sent_ < kHeaderBytes ? 0 : sent_ - kHeaderBytes;
  if (of_payload < payload.size())
    parts[count++] = {const_cast<std::byte*>(payload.data()) + of_payload,
                      payload.size() - of_payload};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

Status MessageSocket::flush() {
  VIADUCT_CHECK(flushQueue());
  if (poller_ == nullptr || watches_room_ == !queue_.empty()) return Ok{};
  watches_room_ = !queue_.empty();
  return poller_->change(watch_, EPOLLIN | EPOLLRDHUP | (watches_room_ ? EPOLLOUT : 0U));
}

Status MessageSocket::flushQueue() {
  while (!queue_.empty()) {
    const ssize_t wrote = writeFirst();
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Ok{};
    if (wrote < 0) return systemError(Code::kPeerLost, "send", errno);
    sent_ += static_cast<std::size_t>(wrote);
    if (sent_ < kHeaderBytes + queue_.front().packet->payload.size()) continue;
    own_bytes_ -= ownBytes(*queue_.front().packet);
    queue_.pop_front();
    sent_ = 0;
  }
  return Ok{};
}

Result<MessageSocket::Read> MessageSocket::read(std::span<std::byte> scratch,
                                                const Decoder::Take& take) {
  const ssize_t got = ::recv(socket_.get(), scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (got == 0) return Read::kEnd;
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Read::kNothing;
    return systemError(Code::kPeerLost, "receive", errno);
  }
  VIADUCT_CHECK(decoder_.feed(scratch.first(static_cast<std::size_t>(got)), take));
  return Read::kSome;
}

}  // namespace viaduct::meet::embedded
