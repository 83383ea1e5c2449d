#include "backends/ofi/address_probe.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "host/devices.h"

namespace viaduct::ofi {
namespace {

constexpr in_port_t kDiscard = 9;

// A socket address of either family.
struct Address {
  explicit Address(std::span<const std::byte> bytes, in_port_t port) {
    if (bytes.size() != sizeof v4 && bytes.size() != sizeof v6) return;
    std::memcpy(&v6, bytes.data(), bytes.size());
    v4.sin_port = htons(port);  // the port of v6 lies at the same place
    size = static_cast<socklen_t>(bytes.size());
  }
  bool isV6() const { return any.sa_family == AF_INET6; }
  std::string host() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* bytes = isV6() ? static_cast<const void*>(&v6.sin6_addr) : &v4.sin_addr;
    return ::inet_ntop(any.sa_family, bytes, text.data(), text.size()) == nullptr ? ""
                                                                                  : text.data();
  }

  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6{};
  };
  socklen_t size = 0;
};

// The index of the interface with this address, in network byte order; 0 if there is none.
std::uint32_t interfaceOf(const Address& address) {
  const auto device = host::findDevice(address.host());
  return device ? htonl(::if_nametoindex(device->name.c_str())) : 0;
}

template <class T>
bool option(const base::Fd& socket, int level, int name, const T& value) {
  return ::setsockopt(socket.get(), level, name, &value, sizeof value) == 0;
}

}  // namespace

// Sends over the device's own interface, as RDMA packets do, whatever the routes prefer. It uses
// UNICAST_IF, because a socket bound to the device would not get the kernel's own error for a
// neighbour that does not answer.
AddressProbe::AddressProbe(std::span<const std::byte> from, std::span<const std::byte> to) {
  const Address here(from, 0), there(to, kDiscard);
  if (here.size == 0 || there.size != here.size) return;
  const std::uint32_t interface = interfaceOf(here);
  base::Fd made(::socket(here.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made || interface == 0) return;
  const bool set = here.isV6() ? option(made, IPPROTO_IPV6, IPV6_RECVERR, 1) &&
                                     option(made, IPPROTO_IPV6, IPV6_UNICAST_IF, interface)
                               : option(made, IPPROTO_IP, IP_RECVERR, 1) &&
                                     option(made, IPPROTO_IP, IP_UNICAST_IF, interface);
  if (!set) return;
  if (::bind(made.get(), &here.any, here.size) != 0 ||
      ::connect(made.get(), &there.any, there.size) != 0 ||
      ::send(made.get(), "", 1, MSG_NOSIGNAL) != 1)
    return;
  socket_ = std::move(made);
}

// While the kernel resolves the neighbour, the datagram waits, and SIOCOUTQ counts it as unsent.
Result<bool> AddressProbe::over() {
  if (!socket_) return true;
  int unsent = 0, error = 0;
  socklen_t size = sizeof error;
  if (::ioctl(socket_.get(), SIOCOUTQ, &unsent) == 0 && unsent > 0) return false;
  static_cast<void>(::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size));
  socket_.reset();
  if (error == EHOSTUNREACH) return systemError(Code::kPeerLost, "look for the neighbour", error);
  return true;
}

}  // namespace viaduct::ofi
