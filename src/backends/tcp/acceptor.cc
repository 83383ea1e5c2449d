#include "backends/tcp/acceptor.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "backends/tcp/socket.h"

namespace viaduct::tcp {

namespace {
constexpr int kAcceptsPerEvent = 16;
// Without free descriptors the listener would stay readable, and wake us for ever.
constexpr std::chrono::milliseconds kPause{100};
}  // namespace

Acceptor::~Acceptor() {
  while (!pending_.empty()) drop(pending_.begin());
  for (const Listener& one : listeners_) poller_.forget(one.watch);
  for (const base::Poller::Id id : pauses_)
    if (id != 0) poller_.forgetTimer(id);
  for (const base::Poller::Id id : {timer_, again_})
    if (id != 0) poller_.forgetTimer(id);
}

Status Acceptor::listen(const Endpoint& at) {
  VIADUCT_TRY(base::Fd fd, listenOn(at));
  const std::size_t index = listeners_.size();
  VIADUCT_TRY(
      const base::Poller::Id watch,
      poller_.watch(fd.get(), EPOLLIN, [this, index](std::uint32_t) { onConnection(index); }));
  listeners_.push_back({std::move(fd), watch});
  pauses_.push_back(0);
  return Ok{};
}

std::vector<Endpoint> Acceptor::addresses() const {
  std::vector<Endpoint> out;
  const auto here = interfaces();
  for (const Listener& listener : listeners_) {
    const Endpoint at = localEndpoint(listener.fd.get());
    if (!at.wildcard()) {
      out.push_back(at);
      continue;
    }
    for (const Interface& one : here)
      if (one.address.family() == at.family() && !one.address.linkLocal())
        out.push_back(one.address.withPort(at.port()));
  }
  return out;
}

void Acceptor::onConnection(std::size_t listener) {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    base::Fd fd(
        ::accept4(listeners_[listener].fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      add(std::move(fd));
    } else {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        pause(listener);
      return;
    }
  }
}

void Acceptor::pause(std::size_t listener) {
  static_cast<void>(poller_.change(listeners_[listener].watch, 0));
  pauses_[listener] = poller_.at(Clock::now() + kPause, [this, listener] {
    pauses_[listener] = 0;
    static_cast<void>(poller_.change(listeners_[listener].watch, EPOLLIN));
  });
}

void Acceptor::add(base::Fd fd) {
  // A peer says hello at once; who has waited longest is most likely a stranger.
  if (pending_.size() >= kMaxPending) drop(pending_.begin());
  pending_.push_back({.fd = std::move(fd), .until = Clock::now() + patience_});
  const Place one = std::prev(pending_.end());
  auto watch = poller_.watch(one->fd.get(), EPOLLIN, [this, one](std::uint32_t) { onBytes(one); });
  if (!watch) return drop(one);
  one->watch = *watch;
  setTimer();
}

void Acceptor::onBytes(Place one) {
  // Exactly the hello: what follows belongs to the link.
  const ssize_t got =
      ::recv(one->fd.get(), one->bytes.data() + one->got, one->bytes.size() - one->got, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(one);
  one->got += static_cast<std::size_t>(got);
  if (one->got < one->bytes.size()) return;
  poller_.forget(std::exchange(one->watch, 0));
  offer(one);
}

void Acceptor::offer(Place one) {
  const auto hello = decodeHello(one->bytes);
  if (!hello || offer_(*hello, one->bytes, one->fd) != Verdict::kUnknown) drop(one);
}

void Acceptor::linkAdded() {
  if (again_ != 0 || pending_.empty()) return;
  again_ = poller_.at(Clock::now(), [this] { offerAgain(); });
}

void Acceptor::offerAgain() {
  again_ = 0;
  for (auto at = pending_.begin(); at != pending_.end();) {
    const Place one = at++;
    if (one->got == one->bytes.size()) offer(one);
  }
}

void Acceptor::drop(Place one) {
  if (one->watch != 0) poller_.forget(one->watch);
  pending_.erase(one);
}

void Acceptor::onTimer() {
  timer_ = 0;
  const auto now = Clock::now();
  while (!pending_.empty() && pending_.front().until <= now) drop(pending_.begin());
  setTimer();
}

void Acceptor::setTimer() {
  if (timer_ == 0 && !pending_.empty())
    timer_ = poller_.at(pending_.front().until, [this] { onTimer(); });
}

}  // namespace viaduct::tcp
