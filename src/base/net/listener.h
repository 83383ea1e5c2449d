// Accepts peers' connections. Limits unauthenticated ones, so that they cannot keep peers out. At
// the limit, or without descriptors, drops the oldest connection of the source that has the most,
// after a minimum time. Until then, new connections wait in the backlog. Threads: under the owner's
// lock; `accepted` runs from the Poller's handlers.
#pragma once

#include <viaduct/result.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/net/address.h"
#include "base/net/unproven.h"
#include "base/poller.h"

namespace viaduct::base {

// Opens a listening socket, closed on exec. `shared`: other processes of this user may listen at
// the same address, and each connecting peer reaches one of them.
Result<Fd> listenAt(const SocketAddress& address, bool shared = false);

class Listener {
 public:
  // The owner keeps `place` until the connection is authenticated, and not longer than the
  // Listener.
  using Accepted = std::function<void(Fd socket, Unproven::Place place)>;

  // `listen`: "host:port", "[v6]:port", "0.0.0.0:port", "[::]:port" (IPv6 only), "*:port". Port 0
  // takes a free one. `unix_name`: of an abstract Unix socket, without '@'; empty for none. Host
  // names have to be resolved by `until`.
  static Result<std::unique_ptr<Listener>> open(const std::vector<std::string>& listen,
                                                std::string unix_name, Poller& poller,
                                                Accepted accepted,
                                                Clock::time_point until = Clock::time_point::max());
  // Adds a socket that listens already.
  Status adopt(Fd listening);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Addresses for peers: real ports, and for a wildcard every interface's own address. Loopback
  // addresses only if there are no others.
  std::vector<std::string> addresses() const;
  const std::string& unixName() const;
  const Unproven& unproven() const;
  // Whether connecting peers have had to wait since `then`, or another connection was dropped for
  // them, because this process was out of descriptors.
  bool lackedSince(Clock::time_point then) const;

  class Impl;

 private:
  explicit Listener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace viaduct::base
