#include "agent/session/socket_facts.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/net/address.h"

namespace viaduct::agent {
namespace {

int peerPidOf(int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? who.pid : 0;
}

std::uint64_t networkOf(int socket) {
  std::uint64_t cookie = 0;  // stays 0 on kernels before 5.14
  socklen_t size = sizeof cookie;
  ::getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size);
  return cookie;
}

}  // namespace

// Only one process of a network namespace can bind an abstract name. So two processes that connect
// through it have no relay between them. The proof covers the name and the namespace. A relay from
// another namespace, another name or TCP therefore fails, and frames over a Unix socket need no
// encryption.
Result<SocketFacts> socketFactsOf(int socket, bool dialer) {
  VIADUCT_TRY(const base::SocketAddress local, base::localAddress(socket));
  VIADUCT_TRY(const base::SocketAddress remote, base::remoteAddress(socket));
  SocketFacts facts{
      .is_unix = local.family() == AF_UNIX, .remote = remote.text(), .binding = "tcp"};
  if (!facts.is_unix) return facts;
  facts.peer_pid = peerPidOf(socket);
  if (remote.unixName().empty()) facts.remote = fmt::format("unix:pid {}", facts.peer_pid);
  facts.binding =
      fmt::format("unix {} {}", networkOf(socket), (dialer ? remote : local).unixName());
  return facts;
}

}  // namespace viaduct::agent
