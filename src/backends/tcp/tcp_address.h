// Socket addresses: read, printed, listed, chosen. Threads: plain values; any.
#pragma once

#include <sys/socket.h>
#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace viaduct::tcp {

struct TcpAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  std::span<const std::byte> host() const;  // 4 or 16 bytes; else none
  std::uint16_t port() const;
  TcpAddress withPort(std::uint16_t port) const;
  bool loopback() const;
  bool wildcard() const;
  bool linkLocal() const;
  bool sameHost(const TcpAddress& other) const;  // the port not counted
  std::string text() const;                      // "10.0.0.1:80", "[::1]:80"

  static TcpAddress of(const sockaddr* address, socklen_t length);
};

// An address of this machine.
struct LocalInterface {
  std::string name;
  TcpAddress address;
  TcpAddress mask;
};
std::vector<LocalInterface> interfaces();

// "host:port" to bind to; the host by number or name, the port ignored.
Result<std::vector<TcpAddress>> listenAddresses(std::string_view host_port,
                                                Clock::time_point until = Clock::time_point::max());

// Where a rail's sockets come from. No address: wherever the system likes.
struct RailSource {
  std::string name;
  std::optional<TcpAddress> address;
  std::string device;  // given by the interface's name
};
// An address of this machine, or an interface's name.
Result<RailSource> sourceOf(const std::string& text, std::span<const LocalInterface> here);

base::Bytes encodeAddresses(std::span<const TcpAddress> addresses);
Result<std::vector<TcpAddress>> decodeAddresses(std::span<const std::byte> bytes);

// Those that a rail reaches by itself: an address on another rail's network leads over that one.
std::vector<TcpAddress> ownOf(const RailSource& from, const std::vector<TcpAddress>& there,
                              std::span<const RailSource> rails,
                              std::span<const LocalInterface> here);

// The peer's addresses in the order to try from this source, the `turn`th of those that are equally
// near first.
std::vector<TcpAddress> inOrder(const std::vector<TcpAddress>& there, const RailSource& from,
                                std::span<const LocalInterface> here, bool same_host,
                                std::size_t turn);

}  // namespace viaduct::tcp
