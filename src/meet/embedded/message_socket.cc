#include "meet/embedded/message_socket.h"

#include <fmt/format.h>

namespace viaduct::meet::embedded {
namespace {

// The limit of the bytes that wait for an end that does not read. Payloads that all members share
// do not count.
constexpr std::size_t kMaxUnsent = std::size_t{64} << 20U;

bool isShared(const Packet& packet) {
  return packet.type == Type::kFormed || packet.type == Type::kValues;
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
  const bool counts = !isShared(*packet);
  if (writer_.unsent() + (counts ? packet->payload.size() : 0) > kMaxUnsent)
    return Error{.code = Code::kBusy,
                 .operation = "send",
                 .detail = fmt::format("{} bytes wait for the other end; the limit is {}",
                                       writer_.unsent(), kMaxUnsent)};
  VIADUCT_CHECK(writer_.write(
      socket_.get(), static_cast<std::uint8_t>(packet->type),
      {.payload = {packet, &packet->payload}, .digest = packet->digest, .counts = counts}));
  return watchRoom();
}

Status MessageSocket::flush() {
  VIADUCT_CHECK(writer_.flush(socket_.get()));
  return watchRoom();
}

// Lets the poller report room in the socket while messages wait for it.
Status MessageSocket::watchRoom() {
  if (poller_ == nullptr || watches_room_ == !writer_.empty()) return Ok{};
  watches_room_ = !writer_.empty();
  return poller_->change(watch_, EPOLLIN | EPOLLRDHUP | (watches_room_ ? EPOLLOUT : 0U));
}

Result<bool> MessageSocket::read(const Take& take) {
  base::FrameDecoder& decoder = reader_.decoder();
  VIADUCT_TRY(const auto got, reader_.read(socket_.get()));
  if (got.ended) return false;
  base::Frame frame;
  base::FrameDecoder::Next next{};
  while ((next = decoder.next(frame)) == base::FrameDecoder::Next::kFrame)
    if (!frame.skip) VIADUCT_CHECK(take(frame));
  if (next == base::FrameDecoder::Next::kBroken) return decoder.error();
  decoder.freeBuffer();  // so that thousands of idle connections need no memory
  return true;
}

}  // namespace viaduct::meet::embedded
