#include "backends/tcp/dial.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "backends/tcp/socket.h"

namespace viaduct::tcp {

namespace {

std::string likelyCause(int os_errno) {
  switch (os_errno) {
    case ECONNREFUSED:
      return "no process listens there: the peer has ended, or the address leads elsewhere";
    case ETIMEDOUT:
      return "no answer: a firewall drops the packets, or the host is down";
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EADDRNOTAVAIL:
    case EINVAL:
      return "no route from this source to that address";
    case ECONNRESET:
    case EPIPE:
      return "the peer has ended this session, or another process answered";
    default:
      return "";
  }
}

}  // namespace

// A timer runs the first step, so that `done` never runs inside the constructor.
Dial::Dial(base::Poller& poller, Plan plan, Done done)
    : poller_(poller),
      plan_(std::move(plan)),
      done_(std::move(done)),
      until_(poller.now() + plan_.limit),
      timer_(poller.at(poller.now(), [this] {
        timer_ = 0;
        next();
      })) {}

Dial::~Dial() { stopWatching(); }

void Dial::stopWatching() {
  if (watch_ != 0) poller_.forget(std::exchange(watch_, 0));
  if (timer_ != 0) poller_.forgetTimer(std::exchange(timer_, 0));
}

void Dial::next() {
  while (at_ < plan_.to.size()) {
    const auto tried = connect(plan_.to[at_]);
    if (tried) return;
    if (!first_) first_ = tried.error();
    ++at_;
  }
  if (!first_)
    first_ = Error{.code = Code::kPeerLost,
                   .operation = "connect from " + plan_.from.name,
                   .detail = "the peer gave no address that this rail could reach"};
  if (plan_.to.size() > 1)
    first_->remedy = fmt::format("all {} addresses of the peer were tried", plan_.to.size());
  const Done done = std::move(done_);
  done(*first_);
}

Status Dial::connect(const base::SocketAddress& to) {
  VIADUCT_TRY(fd_, socketFrom(plan_.from, to.family()));
  greeted_ = false;
  got_ = 0;
  if (::connect(fd_.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) {
    Error why = systemError(Code::kPeerLost, "connect to " + to.text(), errno);
    why.cause = likelyCause(why.os_errno);
    why.device = plan_.from.name;
    return why;
  }
  VIADUCT_TRY(watch_, poller_.watch(fd_.get(), EPOLLOUT, [this](std::uint32_t) { onEvent(); }));
  const auto now = poller_.now();
  const auto share = (until_ - now) / static_cast<std::int64_t>(plan_.to.size() - at_);
  timer_ = poller_.at(now + share, [this] {
    timer_ = 0;
    onTimeout();
  });
  return Ok{};
}

void Dial::failed(Error why) {
  stopWatching();
  fd_.reset();
  why.device = plan_.from.name;
  why.cause = likelyCause(why.os_errno);
  if (!first_) first_ = std::move(why);
  ++at_;
  next();
}

void Dial::onTimeout() {
  failed(systemError(Code::kPeerLost,
                     (greeted_ ? "wait for the welcome of " : "connect to ") + plan_.to[at_].text(),
                     ETIMEDOUT));
}

void Dial::onEvent() {
  if (greeted_) return onWelcome();
  int wrong = 0;
  socklen_t length = sizeof(wrong);
  ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &wrong, &length);
  if (wrong != 0)
    return failed(systemError(Code::kPeerLost, "connect to " + plan_.to[at_].text(), wrong));
  const auto hello = encodeHello(plan_.hello, plan_.key);
  // A new socket has room for these few bytes, so one send() is enough.
  const ssize_t put = ::send(fd_.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
  if (put != static_cast<ssize_t>(hello.size()))
    return failed(systemError(Code::kPeerLost, "hello to " + plan_.to[at_].text(), errno));
  greeted_ = true;
  static_cast<void>(poller_.change(watch_, EPOLLIN));
}

void Dial::onWelcome() {
  // Reads no byte beyond the welcome, because the next bytes belong to the link.
  const ssize_t got = ::recv(fd_.get(), welcome_.data() + got_, welcome_.size() - got_, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0)
    return failed(systemError(Code::kPeerLost, "welcome of " + plan_.to[at_].text(),
                              got == 0 ? ECONNRESET : errno));
  got_ += static_cast<std::size_t>(got);
  if (got_ < welcome_.size()) return;
  if (!welcomeIsGenuine(welcome_, plan_.hello, plan_.key))
    return failed({.code = Code::kDenied,
                   .operation = "welcome of " + plan_.to[at_].text(),
                   .detail = "it does not know this session's key"});
  stopWatching();
  const Done done = std::move(done_);
  done(std::move(fd_));
}

}  // namespace viaduct::tcp
