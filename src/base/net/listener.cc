#include "base/net/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/lists.h"
#include "base/log.h"
#include "base/net/address.h"
#include "base/net/lookup.h"

namespace viaduct::base {
namespace {

// The kernel lowers this to its own limit (net.core.somaxconn). A connecting peer that finds the
// backlog full tries again only after a second.
constexpr int kBacklog = 65'536;
constexpr int kAcceptsPerTurn = 64;
// The pause of a listener that is out of file descriptors and has no connection to drop. Connecting
// peers wait in its backlog meanwhile.
constexpr std::chrono::milliseconds kPauseWithoutFds{100};
constexpr std::chrono::seconds kSayEvery{10};

// Whether a connecting peer waits in the backlog. Without one, no connection has to be dropped.
bool isCalled(const Fd& listening) {
  pollfd calls{.fd = listening.get(), .events = POLLIN, .revents = 0};
  return ::poll(&calls, 1, 0) != 0;
}

// Limits the repetition of a log line. True: the next line is due, and from now on counts as
// logged.
bool isDue(std::optional<Clock::time_point>& last_said, Clock::time_point now) {
  if (last_said && now - *last_said < kSayEvery) return false;
  last_said = now;
  return true;
}

// The meaning of an errno of bind(). Other errors are kDevice, without a cause.
struct BindFailure {
  int os_errno;
  Code code;
  const char *cause, *remedy;
};
constexpr std::array kBindFailures{
    BindFailure{EADDRINUSE, Code::kBusy,
                "another process, or another agent of this one, listens there",
                "choose another port, or port 0 for a free one; ss -ltnp shows who has it"},
    BindFailure{EADDRNOTAVAIL, Code::kInvalid, "no interface of this host has that address",
                "ip addr lists its addresses; 0.0.0.0 or [::] means all"},
    BindFailure{EACCES, Code::kDenied, "ports below 1024 belong to root", "choose a higher port"}};

Error bindError(const std::string& text, int why) {
  Error error = systemError(Code::kDevice, "bind", why);
  error.detail = fmt::format("{}: {}", text, error.detail);
  if (const auto* const known = firstWith(kBindFailures, &BindFailure::os_errno, why))
    std::tie(error.code, error.cause, error.remedy) =
        std::tie(known->code, known->cause, known->remedy);
  return error;
}

Result<Fd> listenWith(const SocketAddress& address, bool shared, bool v4_too) {
  VIADUCT_TRY(Fd fd, streamSocket(address.family()));
  const int on = 1, v6_only = v4_too ? 0 : 1;
  // Lets a restarted agent bind its port at once. Two live listeners still cannot share it.
  if (address.family() != AF_UNIX) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (shared) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  // Without `v4_too`, separates "0.0.0.0" from "[::]" on every system.
  if (address.family() == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  if (::bind(fd.get(), address.get(), address.size) != 0) return bindError(address.text(), errno);
  if (::listen(fd.get(), kBacklog) != 0) return bindError(address.text(), errno);
  return fd;
}

}  // namespace

// Leaves out link-local addresses, because they mean nothing on other hosts.
Result<std::vector<std::string>> reachableAt(const SocketAddress& bound) {
  if (!bound.isAny()) return std::vector{bound.text()};
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return systemError(Code::kDevice, "getifaddrs", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  std::vector<std::string> outside, loopback;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 ||
        one->ifa_addr->sa_family != bound.family())
      continue;
    SocketAddress address{.size = bound.size};
    std::memcpy(&address.storage, one->ifa_addr, bound.size);
    address.setPort(bound.port());
    if (address.isLinkLocal()) continue;
    ((one->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : outside).push_back(address.text());
  }
  return outside.empty() ? loopback : outside;
}

Result<Fd> listenAt(const SocketAddress& address, bool shared) {
  return listenWith(address, shared, false);
}

Result<Fd> listenEverywhere(std::uint16_t port) {
  constexpr std::array<std::byte, 16> kAny{};
  auto listening = listenWith(hostAddress(kAny, port), false, true);
  if (listening || listening.error().os_errno == EADDRINUSE) return listening;
  return listenAt(hostAddress(std::span(kAny).first(4), port));
}

Listener::Listener(std::string unix_name, Poller& poller, Accepted accepted)
    : unix_name_(std::move(unix_name)), poller_(poller), accepted_(std::move(accepted)) {}

Listener::~Listener() {
  for (const Door& door : doors_) poller_.forget(door.watch);
  poller_.forgetTimer(reopen_timer_);
}

Status Listener::start(const std::vector<std::string>& listen, Clock::time_point until) {
  for (const std::string& text : listen) VIADUCT_CHECK(openHost(text, until));
  if (!unix_name_.empty()) {
    VIADUCT_TRY(const SocketAddress address, unixAddress(unix_name_));
    VIADUCT_CHECK(openDoor(address));
  }
  return Ok{};
}

Status Listener::adopt(Fd listening) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(listening.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0)
    return systemError(Code::kInvalid, "getsockopt(SO_ACCEPTCONN)", errno);
  if (listens == 0)
    return Error{.operation = "listen",
                 .detail = fmt::format("descriptor {} does not listen", listening.get())};
  // accept() must not block, whatever the flags of the adopted socket.
  const int flags = ::fcntl(listening.get(), F_GETFL);
  if (flags < 0 || ::fcntl(listening.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(listening.get(), F_SETFD, FD_CLOEXEC) != 0)
    return systemError(Code::kDevice, "fcntl", errno);
  return addDoor(std::move(listening));
}

// One working address suffices, because a name may also have an address of a family that this
// system lacks.
Status Listener::openHost(const std::string& text, Clock::time_point until) {
  VIADUCT_TRY(const HostPort where, parseHostPort(text));
  VIADUCT_TRY(const auto addresses, resolve(where, until));
  std::optional<Error> failed;
  bool opened = false;
  for (const SocketAddress& address : addresses) {
    Status door = openDoor(address);
    if (door)
      opened = true;
    else if (!failed)
      failed = std::move(door).error();
  }
  if (!opened && failed) return *failed;
  return Ok{};
}

Status Listener::openDoor(const SocketAddress& address) {
  VIADUCT_TRY(Fd fd, listenAt(address));
  return addDoor(std::move(fd));
}

Status Listener::addDoor(Fd fd) {
  VIADUCT_TRY(const SocketAddress bound, localAddress(fd.get()));
  if (bound.family() != AF_UNIX) {
    VIADUCT_TRY(const auto reached, reachableAt(bound));
    addresses_.insert(addresses_.end(), reached.begin(), reached.end());
  }
  const std::size_t door = doors_.size();
  VIADUCT_TRY(const Poller::Id watch,
              poller_.watch(fd.get(), EPOLLIN, [this, door](std::uint32_t) { acceptFrom(door); }));
  doors_.push_back({.fd = std::move(fd), .watch = watch});
  return Ok{};
}

void Listener::acceptFrom(std::size_t door) {
  for (int i = 0; i < kAcceptsPerTurn; ++i)
    if (!acceptOne(doors_[door])) return;
}

bool Listener::acceptOne(const Door& door) {
  if (unproven_.full() && (!isCalled(door.fd) || !makePlace())) return false;
  Fd socket(::accept4(door.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    auto place = unproven_.admit(socket.get(), poller_.now());
    // Reading from the socket shows later whether the connecting peer has gone already.
    if (tuneSocket(socket.get())) accepted_(std::move(socket), std::move(place));
    return true;
  }
  const int why = errno;
  switch (why) {
    case EAGAIN:
      return false;
    case EMFILE:  // accept4() reports these even if no connection is pending
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return isCalled(door.fd) && makeDescriptor(why);
    default:
      return true;  // the failure of one connection: ECONNABORTED, or a pending network error
  }
}

bool Listener::makePlace() {
  if (isDue(crowd_said_, poller_.now()))
    log(LogLevel::kWarning,
        "{} connections are not authenticated yet, which is the limit: old ones are closed for new "
        "ones",
        unproven_.count());
  return dropOne();
}

bool Listener::makeDescriptor(int why) {
  lacked_ = poller_.now();
  if (isDue(shortage_said_, *lacked_)) {
    Error error = systemError(Code::kExhausted, "accept", why);
    error.cause = "this process has reached its limit of open files";
    error.remedy = "raise the limit (ulimit -n); connecting peers wait until there is room";
    log(LogLevel::kError, "{}", error.text());
  }
  if (unproven_.count() > 0) return dropOne();
  closeUntil(poller_.now() + kPauseWithoutFds);
  return false;
}

// False: no connection may be dropped yet. Connecting peers wait in the backlog meanwhile.
bool Listener::dropOne() {
  const auto now = poller_.now();
  const auto when = unproven_.dropOne(now);
  if (when > now) closeUntil(when);
  return when <= now;
}

// Pauses accepting. Connections stay in the backlog, so without a pause the poller would report the
// socket without end.
void Listener::closeUntil(Clock::time_point when) {
  watchAll(0);
  poller_.forgetTimer(reopen_timer_);
  reopen_timer_ = poller_.at(when, [this] { watchAll(EPOLLIN); });
}

void Listener::watchAll(std::uint32_t events) {
  for (const Door& door : doors_)
    if (const Status changed = poller_.change(door.watch, events); !changed)
      log(LogLevel::kError, "listener: {}", changed.error().text());
}

Result<std::unique_ptr<Listener>> Listener::open(const std::vector<std::string>& listen,
                                                 std::string unix_name, Poller& poller,
                                                 Accepted accepted, Clock::time_point until) {
  std::unique_ptr<Listener> out(new Listener(std::move(unix_name), poller, std::move(accepted)));
  VIADUCT_CHECK(out->start(listen, until));
  return out;
}

bool Listener::isLocal() const {
  return std::all_of(addresses_.begin(), addresses_.end(), [](const std::string& address) {
    const auto where = parseHostPort(address);
    return where && (where->host.starts_with("127.") || where->host == "::1");
  });
}

}  // namespace viaduct::base
