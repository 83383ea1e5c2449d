// A TCP port of loopback that nobody listens at. Threads: any.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace viaduct::testing {

// Ports are handed out in turn, so that it stays free for a while.
inline std::uint16_t freePort() {
  const base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), size) != 0) return 0;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) return 0;
  return ntohs(at.sin_port);
}

inline std::string freeAddress() { return "127.0.0.1:" + std::to_string(freePort()); }

}  // namespace viaduct::testing
