#include "base/net/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/net/address.h"
#include "base/net/lookup.h"

namespace viaduct::base {
namespace {

// More than any kernel lets wait (net.core.somaxconn): who finds no room there tries again only
// after a second.
constexpr int kBacklog = 65'536;
constexpr int kAcceptsPerTurn = 64;
// How long a listener that is out of file descriptors leaves callers in its backlog.
constexpr std::chrono::milliseconds kPauseWithoutFds{100};

bool isLinkLocal(const SocketAddress& address) {
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
}

// The addresses at which a wildcard socket is reached. Link-local ones mean nothing elsewhere.
Result<std::vector<std::string>> expand(const SocketAddress& any) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return systemError(Code::kDevice, "getifaddrs", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  std::vector<std::string> outside, loopback;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 ||
        one->ifa_addr->sa_family != any.family())
      continue;
    SocketAddress address{.size = any.size};
    std::memcpy(&address.storage, one->ifa_addr, any.size);
    address.setPort(any.port());
    if (isLinkLocal(address)) continue;
    ((one->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : outside).push_back(address.text());
  }
  return outside.empty() ? loopback : outside;
}

Error bindError(const std::string& text, int why) {
  Error error = systemError(Code::kDevice, "bind", why);
  error.detail = fmt::format("{}: {}", text, error.detail);
  if (why == EADDRINUSE) {
    error.code = Code::kBusy;
    error.cause = "another process, or another agent of this one, listens there";
    error.remedy = "choose another port, or port 0 for a free one; ss -ltnp shows who has it";
  } else if (why == EADDRNOTAVAIL) {
    error.code = Code::kInvalid;
    error.cause = "no interface of this host has that address";
    error.remedy = "ip addr shows which there are; 0.0.0.0 or [::] take all";
  } else if (why == EACCES) {
    error.code = Code::kDenied;
    error.cause = "ports below 1024 belong to root";
    error.remedy = "choose a higher port";
  }
  return error;
}

}  // namespace

Result<Fd> listenAt(const SocketAddress& address) {
  VIADUCT_TRY(Fd fd, streamSocket(address.family()));
  const int on = 1;
  // A restarted agent may have its port back at once; two live ones still can not share it.
  if (address.family() != AF_UNIX) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // "0.0.0.0" and "[::]" are two things here, on every system.
  if (address.family() == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.get(), address.get(), address.size) != 0) return bindError(address.text(), errno);
  if (::listen(fd.get(), kBacklog) != 0) return bindError(address.text(), errno);
  return fd;
}

class Listener::Impl {
 public:
  Impl(std::string unix_name, Poller& poller, Accepted accepted)
      : unix_name_(std::move(unix_name)), poller_(poller), accepted_(std::move(accepted)) {}
  ~Impl() {
    for (const Door& door : doors_) poller_.forget(door.watch);
    poller_.forgetTimer(reopen_timer_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status start(const std::vector<std::string>& listen, Clock::time_point until);
  Status adopt(Fd listening);
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::string& unixName() const { return unix_name_; }

 private:
  struct Door {
    Fd fd;
    bool is_unix = false;
    Poller::Id watch = 0;
  };

  Status openHost(const std::string& text, Clock::time_point until);
  Status openDoor(const SocketAddress& address);
  Status addDoor(Fd fd);
  Status watchDoors();
  void acceptFrom(std::size_t door);
  bool acceptOne(const Door& door);
  void closeForNow(int why);
  void watchAll(std::uint32_t events);

  std::string unix_name_;
  Poller& poller_;
  Accepted accepted_;
  std::vector<Door> doors_;
  std::vector<std::string> addresses_;
  Poller::Id reopen_timer_ = 0;
  bool complained_ = false;  // since the last success
};

Status Listener::Impl::start(const std::vector<std::string>& listen, Clock::time_point until) {
  for (const std::string& text : listen) VIADUCT_CHECK(openHost(text, until));
  if (!unix_name_.empty()) {
    VIADUCT_TRY(const SocketAddress address, unixAddress(unix_name_));
    VIADUCT_CHECK(openDoor(address));
  }
  return watchDoors();
}

Status Listener::Impl::adopt(Fd listening) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(listening.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0)
    return systemError(Code::kInvalid, "getsockopt(SO_ACCEPTCONN)", errno);
  if (listens == 0)
    return Error{.operation = "listen",
                 .detail = fmt::format("descriptor {} does not listen", listening.get())};
  // accept() must not block, whoever opened the socket.
  const int flags = ::fcntl(listening.get(), F_GETFL);
  if (flags < 0 || ::fcntl(listening.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(listening.get(), F_SETFD, FD_CLOEXEC) != 0)
    return systemError(Code::kDevice, "fcntl", errno);
  VIADUCT_CHECK(addDoor(std::move(listening)));
  return watchDoors();
}

Status Listener::Impl::watchDoors() {
  for (std::size_t i = 0; i < doors_.size(); ++i) {
    VIADUCT_TRY(doors_[i].watch, poller_.watch(doors_[i].fd.get(), EPOLLIN,
                                               [this, i](std::uint32_t) { acceptFrom(i); }));
  }
  return Ok{};
}

// A name may have several addresses, one of a family that this system lacks: one is enough.
Status Listener::Impl::openHost(const std::string& text, Clock::time_point until) {
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

Status Listener::Impl::openDoor(const SocketAddress& address) {
  VIADUCT_TRY(Fd fd, listenAt(address));
  return addDoor(std::move(fd));
}

Status Listener::Impl::addDoor(Fd fd) {
  VIADUCT_TRY(const SocketAddress bound, localAddress(fd.get()));
  const bool is_unix = bound.family() == AF_UNIX;
  if (!is_unix) {
    std::vector<std::string> reached{bound.text()};
    if (bound.isAny()) {
      VIADUCT_TRY(reached, expand(bound));
    }
    addresses_.insert(addresses_.end(), reached.begin(), reached.end());
  }
  doors_.push_back({.fd = std::move(fd), .is_unix = is_unix});
  return Ok{};
}

void Listener::Impl::acceptFrom(std::size_t door) {
  for (int i = 0; i < kAcceptsPerTurn; ++i)
    if (!acceptOne(doors_[door])) return;
}

bool Listener::Impl::acceptOne(const Door& door) {
  Fd socket(::accept4(door.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    complained_ = false;
    // A caller that has gone already is found out by whoever reads from it.
    if (tuneSocket(socket.get())) accepted_(std::move(socket), door.is_unix);
    return true;
  }
  switch (errno) {
    case EAGAIN:
      return false;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      closeForNow(errno);
      return false;
    default:
      return true;  // the caller's own trouble: ECONNABORTED, a network error that waited in line
  }
}

// The caller stays in the backlog and its socket readable: without a pause we would spin on it.
void Listener::Impl::closeForNow(int why) {
  if (!std::exchange(complained_, true)) {
    Error error = systemError(Code::kExhausted, "accept", why);
    error.cause = "this process has as many files open as its limit allows";
    error.remedy = "raise the limit (ulimit -n); callers wait until there is room";
    log(LogLevel::kError, "{}", error.text());
  }
  watchAll(0);
  poller_.forgetTimer(reopen_timer_);
  reopen_timer_ = poller_.at(Clock::now() + kPauseWithoutFds, [this] { watchAll(EPOLLIN); });
}

void Listener::Impl::watchAll(std::uint32_t events) {
  for (const Door& door : doors_)
    if (const Status changed = poller_.change(door.watch, events); !changed)
      log(LogLevel::kError, "listener: {}", changed.error().text());
}

Listener::Listener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() = default;
std::vector<std::string> Listener::addresses() const { return impl_->addresses(); }
const std::string& Listener::unixName() const { return impl_->unixName(); }

Result<std::unique_ptr<Listener>> Listener::adopt(Fd listening, Poller& poller, Accepted accepted) {
  auto impl = std::make_unique<Impl>(std::string(), poller, std::move(accepted));
  VIADUCT_CHECK(impl->adopt(std::move(listening)));
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

Result<std::unique_ptr<Listener>> Listener::open(const std::vector<std::string>& listen,
                                                 std::string unix_name, Poller& poller,
                                                 Accepted accepted, Clock::time_point until) {
  auto impl = std::make_unique<Impl>(std::move(unix_name), poller, std::move(accepted));
  VIADUCT_CHECK(impl->start(listen, until));
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

}  // namespace viaduct::base
