#include "backends/tcp/socket.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace viaduct::tcp {

namespace {

template <class T>
bool set(int fd, int level, int option, T value) {
  return ::setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

bool setCongestion(int fd, std::string_view name) {
  return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                      static_cast<socklen_t>(name.size())) == 0;
}

}  // namespace

Result<base::Fd> socketFrom(const RailSource& from, int family) {
  VIADUCT_TRY(base::Fd fd, base::streamSocket(family));
  if (!from.address) return fd;
  // Binds the socket to its device, because otherwise two interfaces on one network share a route.
  // Older kernels demand CAP_NET_RAW for that. If it fails, routes by source address still work.
  if (!from.device.empty())
    static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, from.device.data(),
                                   static_cast<socklen_t>(from.device.size())));
  // The kernel then chooses the port at connect, so one source can have more sockets than ports.
  set(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  if (::bind(fd.get(), from.address->get(), from.address->size) != 0) {
    Error why = systemError(Code::kInvalid, "bind to source " + from.name, errno);
    why.device = from.name;
    why.cause = "the address is not one of this machine's any more";
    return why;
  }
  return fd;
}

void tune(int fd, std::chrono::milliseconds detect, bool same_host) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<unsigned int>(detect.count()));
  if (same_host && !setCongestion(fd, "cubic")) setCongestion(fd, "reno");
}

bool wakeFor(int fd, std::size_t bytes) {
  const auto least = static_cast<int>(bytes);
  return ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)) == 0;
}

base::SocketAddress remoteAddress(int fd) {
  auto found = base::remoteAddress(fd);
  return found ? *std::move(found) : base::SocketAddress{};
}

bool isLocal(int fd) {
  const base::SocketAddress remote = remoteAddress(fd);
  if (remote.host().empty()) return false;
  if (remote.isLoopback()) return true;
  const auto here = interfaces();
  return std::any_of(here.begin(), here.end(),
                     [&](const LocalInterface& one) { return one.address.sameHost(remote); });
}

void reset(base::Fd& fd) {
  if (!fd) return;
  set(fd.get(), SOL_SOCKET, SO_LINGER, linger{.l_onoff = 1, .l_linger = 0});
  fd.reset();
}

bool isStale(int fd, std::chrono::milliseconds detect) {
  int waiting = 0;
  if (::ioctl(fd, SIOCINQ, &waiting) != 0 || waiting == 0) return false;
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return true;
  // The limit is less than `detect`, because the peer's kernel still sends queued bytes for a
  // moment.
  return info.tcpi_state != TCP_ESTABLISHED ||
         std::chrono::milliseconds(info.tcpi_last_data_recv) > detect * 3 / 4;
}

}  // namespace viaduct::tcp
