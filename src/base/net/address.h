// Addresses in text form, and as the socket calls take them. Threads: pure, except resolve(), which
// blocks.
#pragma once

#include <sys/socket.h>
#include <viaduct/result.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace viaduct::base {

struct HostPort {
  std::string host = {};  // without brackets; "*" is every interface (IPv4)
  std::uint16_t port = 0;
  bool v6 = false;  // was written in brackets
};
// Parses "host:port", "1.2.3.4:port", "[v6]:port". The error names the wrong character.
Result<HostPort> parseHostPort(std::string_view text);
// Parses the part of a text from `begin` to `end`, whose port may be missing. The error shows the
// whole text, and positions in it.
Result<HostPort> parseHostPort(std::string_view text, std::size_t begin, std::size_t end,
                               std::uint16_t default_port);
// "1.2.3.4:80" or "[::1]:80", from a host with or without brackets.
std::string hostPortText(std::string_view host, std::uint16_t port);

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  std::uint16_t port() const;  // 0 for Unix
  void setPort(std::uint16_t port);
  SocketAddress withPort(std::uint16_t port) const;
  std::span<const std::byte> host() const;          // 4 or 16 bytes; none for Unix
  bool sameHost(const SocketAddress& other) const;  // the port not counted
  bool isAny() const;                               // whether this is the wildcard address
  bool isLoopback() const;
  bool isLinkLocal() const;
  std::string text() const;      // "1.2.3.4:80", "[::1]:80", "unix:@name"
  std::string unixName() const;  // without the '@'; empty for other families
};
// The address of an IPv4 or IPv6 host, which has 4 or 16 bytes.
SocketAddress hostAddress(std::span<const std::byte> host, std::uint16_t port);
// The abstract Unix address of that name, without an '@'.
Result<SocketAddress> unixAddress(std::string_view name);
Result<SocketAddress> localAddress(int socket);
Result<SocketAddress> remoteAddress(int socket);

// The addresses of a host. A host in numbers needs no lookup; otherwise the call asks the system
// and may block long. lookup.h has a resolve() with a deadline.
bool isLiteral(const HostPort& where);
Result<std::vector<SocketAddress>> resolve(const HostPort& where);

// A non-blocking stream socket, closed on exec.
Result<Fd> streamSocket(int family);
// Disables delay of small frames, enables keepalive. Does nothing to a Unix socket.
Status tuneSocket(int socket);

}  // namespace viaduct::base
