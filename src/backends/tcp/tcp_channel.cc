#include "backends/tcp/tcp_channel.h"

#include <utility>

#include "backends/tcp/tcp_link.h"

namespace viaduct::tcp {

TcpChannel::TcpChannel(TcpLink& link, const Position& place, const move::ChannelLife& life)
    : Channel(link, place, life), link_(link) {}

Status TcpChannel::adopt(TcpShared& shared, const RemotePins& remote, const core::PinRights& rights,
                         base::Fd fd, const Protection& protection, SocketKeys keys) {
  dial_.reset();
  auto socket = std::make_unique<DataSocket>(shared, *this, remote, rights, std::move(fd),
                                             protection, std::move(keys));
  VIADUCT_CHECK(socket->open());
  socket_ = std::move(socket);
  life().on(move::ChannelEvent::kProve);
  return Ok{};
}

void TcpChannel::add(move::Job& job) {
  wake();
  socket_->add(job);
}

// Frames of a closed channel stay outstanding until the peer has closed its end too. Until then our
// bytes may still reach the peer's memory.
void TcpChannel::stop(move::Job& job) {
  if (!socket_) return;
  socket_->stop(job);
  wake();
}

void TcpChannel::close() {
  handleEvents();  // the link's other sockets still need watch()
  host().deactivate(*this);
  dial_.reset();
  if (socket_) link_.addClosed(*this);
  socket_.reset();
}

bool TcpChannel::sleep(Clock::time_point now) {
  if (!up() || !socket_->tired(now)) return false;
  socket_->sleep();
  return up();
}

void TcpChannel::awake() {
  if (socket_) socket_->awake();
  if (!active && link_.wantsWatch()) watches_ = true;
}

void TcpChannel::handleEvents() {
  if (std::exchange(watches_, false)) link_.watch();
}

}  // namespace viaduct::tcp
