// Where peers come in. Threads: under the owner's lock; `accepted` runs from the Poller's handlers.
#pragma once

#include <viaduct/result.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/net/address.h"
#include "base/poller.h"

namespace viaduct::base {

// A socket that listens there, closed on exec.
Result<Fd> listenAt(const SocketAddress& address);

class Listener {
 public:
  using Accepted = std::function<void(Fd socket, bool is_unix)>;

  // `listen`: "host:port", "[v6]:port", "0.0.0.0:port", "[::]:port" (IPv6 only), "*:port"; port 0
  // takes a free one. `unix_name`: of an abstract Unix socket, without '@'; empty for none. Host
  // names have to be found by `until`.
  static Result<std::unique_ptr<Listener>> open(const std::vector<std::string>& listen,
                                                std::string unix_name, Poller& poller,
                                                Accepted accepted,
                                                Clock::time_point until = Clock::time_point::max());
  // Takes over a socket that listens already.
  static Result<std::unique_ptr<Listener>> adopt(Fd listening, Poller& poller, Accepted accepted);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // What to tell peers: real ports, and for wildcards every interface's own address; loopback ones
  // only where there is nothing else.
  std::vector<std::string> addresses() const;
  const std::string& unixName() const;

  class Impl;

 private:
  explicit Listener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace viaduct::base
