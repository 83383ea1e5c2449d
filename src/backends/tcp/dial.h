// Opens one data socket to a peer: tries its addresses in order, sends the hello, and waits for the
// welcome. Threads: under the agent's lock. `done` runs once, from a handler of the poller, and may
// destroy the Dial.
#pragma once

#include <functional>
#include <vector>

#include "backends/tcp/hello.h"
#include "backends/tcp/tcp_address.h"
#include "base/fd.h"
#include "base/poller.h"

namespace viaduct::tcp {

class Dial {
 public:
  using Done = std::function<void(Result<base::Fd>)>;
  struct Plan {
    RailSource from;
    std::vector<base::SocketAddress> to;  // in the order to try
    SocketHello hello;
    LinkKey key = {};
    std::chrono::milliseconds limit{};  // for all addresses together
  };

  Dial(base::Poller& poller, Plan plan, Done done);
  ~Dial();
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

 private:
  void next();
  Status connect(const base::SocketAddress& to);
  void onEvent();
  void onWelcome();
  void onTimeout();
  void failed(Error why);
  void stopWatching();

  base::Poller& poller_;
  Plan plan_;
  Done done_;
  Clock::time_point until_;
  std::size_t at_ = 0;  // index in plan_.to of the current address
  std::optional<Error> first_;
  base::Fd fd_;
  base::Poller::Id watch_ = 0, timer_ = 0;
  bool greeted_ = false;
  std::array<std::byte, kWelcomeBytes> welcome_ = {};
  std::size_t got_ = 0;
};

}  // namespace viaduct::tcp
