// Where peers come in. Strangers keep nobody out: when connections that have not proved themselves
// fill their room, or this process has no descriptor left, the oldest of them is dropped for the
// next. Threads: under the owner's lock; `accepted` runs from the Poller's handlers.
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

// A socket that listens there, closed on exec. `shared`: other processes of this user that ask for
// the same may listen there too, and each caller gets to one of them.
Result<Fd> listenAt(const SocketAddress& address, bool shared = false);

class Listener {
 public:
  // `place` is kept until the connection has proved itself, and not longer than the Listener.
  using Accepted = std::function<void(Fd socket, Unproven::Place place)>;

  // `listen`: "host:port", "[v6]:port", "0.0.0.0:port", "[::]:port" (IPv6 only), "*:port"; port 0
  // takes a free one. `unix_name`: of an abstract Unix socket, without '@'; empty for none. Host
  // names have to be found by `until`.
  static Result<std::unique_ptr<Listener>> open(const std::vector<std::string>& listen,
                                                std::string unix_name, Poller& poller,
                                                Accepted accepted,
                                                Clock::time_point until = Clock::time_point::max());
  // Takes over a socket that listens already, beside those there are.
  Status adopt(Fd listening);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // What to tell peers: real ports, and for wildcards every interface's own address; loopback ones
  // only where there is nothing else.
  std::vector<std::string> addresses() const;
  const std::string& unixName() const;
  const Unproven& unproven() const;
  // Whether callers have had to wait since then, because this process had no descriptor for them.
  bool lackedSince(Clock::time_point then) const;

  class Impl;

 private:
  explicit Listener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace viaduct::base
