// Free TCP ports of loopback, which no other test uses. Threads: any.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace viaduct::testing {

// False if another running test has reserved the port. An abstract Unix socket marks the port for
// as long as this process lives, because the port itself has to stay free.
inline bool reservePort(std::uint16_t port) {
  static std::mutex lock;
  static std::vector<base::Fd> reserved;
  base::Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "viaduct-test-port-" + std::to_string(port);
  text.copy(&name.sun_path[1], text.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), size) != 0) return false;
  const std::lock_guard hold(lock);
  reserved.push_back(std::move(fd));
  return true;
}

inline bool isFree(std::uint16_t port) {
  const base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
}

// A free port below the range from which the kernel takes ports for connections; 0: there is none.
// The kernel could give a port inside that range to a connection before the test's server starts.
inline std::uint16_t freePort() {
  constexpr unsigned kFirst = 20'000, kCount = 12'000;
  const unsigned begin = static_cast<unsigned>(::getpid()) * 31U;
  for (unsigned i = 0; i < kCount; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirst + (begin + i) % kCount);
    if (reservePort(port) && isFree(port)) return port;
  }
  return 0;
}

inline std::string freeAddress() { return "127.0.0.1:" + std::to_string(freePort()); }

}  // namespace viaduct::testing
