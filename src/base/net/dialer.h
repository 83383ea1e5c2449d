// Connects to a peer's sockets, one target after the other. Threads: under the owner's lock; `done`
// runs once, from the Poller's handlers, never inside start().
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/net/address.h"
#include "base/poller.h"

namespace viaduct::base {

class Dialer {
 public:
  // Gets the socket and the target that answered. After a failure gets an empty target, and an
  // error with the failed step of each target. May destroy the Dialer.
  using Done = std::function<void(Result<Fd> socket, std::string target)>;

  // `targets`: "unix:@name" or "host:port", the best first. Each gets a fair share of the time
  // left.
  static std::unique_ptr<Dialer> start(std::vector<std::string> targets, Clock::time_point until,
                                       Poller& poller, Done done);
  ~Dialer();  // gives up; `done` does not run any more
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  class Impl;

 private:
  explicit Dialer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Connects to one target in the calling thread, which needs no lock. Calls `goes_on` at least every
// 50 ms, and gives up with kCancelled if it returns false. The socket is non-blocking.
Result<Fd> dial(const std::string& target, Clock::time_point until,
                const std::function<bool()>& goes_on = {});

}  // namespace viaduct::base
