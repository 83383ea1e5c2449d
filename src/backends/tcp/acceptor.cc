#include "backends/tcp/acceptor.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "backends/tcp/socket.h"

namespace viaduct::tcp {

Acceptor::~Acceptor() {
  while (!pending_.empty()) drop(pending_.begin());
  for (const base::Poller::Id id : {timer_, again_})
    if (id != 0) poller_.forgetTimer(id);
}

Status Acceptor::listen(const base::SocketAddress& at) {
  if (!listener_) {
    VIADUCT_TRY(listener_, base::Listener::open({}, {}, poller_,
                                                [this](base::Fd fd, base::Unproven::Place place) {
                                                  add(std::move(fd), std::move(place));
                                                }));
  }
  VIADUCT_TRY(base::Fd fd, base::listenAt(at));
  VIADUCT_TRY(const base::SocketAddress bound, base::localAddress(fd.get()));
  bound_.push_back(bound);
  return listener_->adopt(std::move(fd));
}

std::vector<base::SocketAddress> Acceptor::addresses() const {
  std::vector<base::SocketAddress> out;
  for (const base::SocketAddress& at : bound_) {
    if (!at.isAny()) {
      out.push_back(at);
      continue;
    }
    for (const LocalInterface& one : interfaces())
      if (one.address.family() == at.family() && !one.address.isLinkLocal())
        out.push_back(one.address.withPort(at.port()));
  }
  return out;
}

void Acceptor::add(base::Fd fd, base::Unproven::Place place) {
  pending_.push_back(
      {.fd = std::move(fd), .until = poller_.now() + patience_, .place = std::move(place)});
  const PendingPlace one = std::prev(pending_.end());
  one->place.watch([one] { return one->got == one->bytes.size(); }, [this, one] { drop(one); });
  auto watch = poller_.watch(one->fd.get(), EPOLLIN, [this, one](std::uint32_t) { onBytes(one); });
  if (!watch) return drop(one);
  one->watch = *watch;
  setTimer();
}

void Acceptor::onBytes(PendingPlace one) {
  // Reads no byte beyond the hello, because the next bytes belong to the link.
  const ssize_t got =
      ::recv(one->fd.get(), one->bytes.data() + one->got, one->bytes.size() - one->got, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(one);
  one->got += static_cast<std::size_t>(got);
  if (one->got < one->bytes.size()) return;
  poller_.forget(std::exchange(one->watch, 0));
  offer(one);
}

void Acceptor::offer(PendingPlace one) {
  const auto hello = decodeHello(one->bytes);
  if (!hello || offer_(*hello, one->bytes, one->fd) != HelloVerdict::kUnknown) drop(one);
}

void Acceptor::linkAdded() {
  if (again_ != 0 || pending_.empty()) return;
  again_ = poller_.at(poller_.now(), [this] { offerAgain(); });
}

void Acceptor::offerAgain() {
  again_ = 0;
  for (auto at = pending_.begin(); at != pending_.end();) {
    const PendingPlace one = at++;
    if (one->got == one->bytes.size()) offer(one);
  }
}

void Acceptor::drop(PendingPlace one) {
  if (one->watch != 0) poller_.forget(one->watch);
  pending_.erase(one);
}

void Acceptor::onTimer() {
  timer_ = 0;
  const auto now = poller_.now();
  while (!pending_.empty() && pending_.front().until <= now) drop(pending_.begin());
  setTimer();
}

void Acceptor::setTimer() {
  if (timer_ == 0 && !pending_.empty())
    timer_ = poller_.at(pending_.front().until, [this] { onTimer(); });
}

}  // namespace viaduct::tcp
