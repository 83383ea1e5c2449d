// One HTTP request over loopback. Threads: any.
#pragma once

#include <sys/socket.h>

#include <array>
#include <string>

#include "base/fd.h"
#include "base/net/address.h"

namespace viaduct::testing {

// A connection to "host:port"; none if nobody listens.
inline base::Fd connectTo(const std::string& host_port) {
  const auto address = base::resolve(*base::parseHostPort(host_port))->front();
  base::Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), address.get(), address.size) != 0) socket.reset();
  return socket;
}

// The whole response, with its head; empty if nobody listens.
inline std::string httpGet(const std::string& host_port, const std::string& path) {
  const base::Fd socket = connectTo(host_port);
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n";
  if (!socket || ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  std::string out;
  std::array<char, 65536> piece;
  for (ssize_t got = 0; (got = ::recv(socket.get(), piece.data(), piece.size(), 0)) > 0;)
    out.append(piece.data(), static_cast<std::size_t>(got));
  return out;
}

}  // namespace viaduct::testing
