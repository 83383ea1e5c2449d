// Accepts peers' connections. Limits unauthenticated connections, so that they cannot keep peers
// out. At the limit, or without free descriptors, the Listener picks the source (unproven.h) with
// the most connections. It drops the oldest of these after a minimum time. Until then, new
// connections wait in the backlog. Threads: under the owner's lock; `accepted` runs from the
// Poller's handlers.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
// Opens a listening socket at all addresses of this host, of IPv6 and IPv4, or of IPv4 alone if the
// system has no IPv6.
Result<Fd> listenEverywhere(std::uint16_t port);

// The addresses at which peers reach a socket that is bound to `bound`: for a wildcard every
// interface's own address. Loopback addresses only if there are no others.
Result<std::vector<std::string>> reachableAt(const SocketAddress& bound);

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

  // Addresses for peers, with real ports, as reachableAt() has them.
  const std::vector<std::string>& addresses() const { return addresses_; }
  bool isLocal() const;  // only processes of this host reach it
  const std::string& unixName() const { return unix_name_; }
  const Unproven& unproven() const { return unproven_; }
  // Whether connecting peers have had to wait since `then`, or another connection was dropped for
  // them, because this process was out of descriptors.
  bool lackedSince(Clock::time_point then) const { return lacked_ && *lacked_ >= then; }

 private:
  struct Door {
    Fd fd;
    Poller::Id watch = 0;
  };

  Listener(std::string unix_name, Poller& poller, Accepted accepted);
  Status start(const std::vector<std::string>& listen, Clock::time_point until);
  Status openHost(const std::string& text, Clock::time_point until);
  Status openDoor(const SocketAddress& address);
  Status addDoor(Fd fd);
  void acceptFrom(std::size_t door);
  bool acceptOne(const Door& door);
  bool makePlace();
  bool makeDescriptor(int why);
  bool dropOne();
  void closeUntil(Clock::time_point when);
  void watchAll(std::uint32_t events);

  std::string unix_name_;
  Poller& poller_;
  Accepted accepted_;
  Unproven unproven_;
  std::vector<Door> doors_;
  std::vector<std::string> addresses_;
  Poller::Id reopen_timer_ = 0;
  std::optional<Clock::time_point> crowd_said_, shortage_said_, lacked_;
};

}  // namespace viaduct::base
