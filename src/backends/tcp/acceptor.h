// Listens for data sockets, and reads the hello of each. Threads: under the agent's lock.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "backends/tcp/hello.h"
#include "backends/tcp/tcp_address.h"
#include "base/fd.h"
#include "base/net/listener.h"
#include "base/poller.h"

namespace viaduct::tcp {

class Acceptor {
 public:
  // The answer to a hello.
  enum class HelloVerdict : std::uint8_t {
    kTaken,    // the link has taken the socket
    kRefused,  // the hello is not genuine, or the link does not want the socket
    kUnknown,  // the link does not exist yet; linkAdded() offers the hello again
  };
  using HelloBytes = std::array<std::byte, kHelloBytes>;
  using OnHello =
      std::function<HelloVerdict(const SocketHello& hello, const HelloBytes& bytes, base::Fd& fd)>;

  // A connection that no link has taken after `patience` is dropped.
  Acceptor(base::Poller& poller, std::chrono::milliseconds patience, OnHello offer)
      : poller_(poller), offer_(std::move(offer)), patience_(patience) {}
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  Status listen(const base::SocketAddress& at);
  // The addresses to which peers connect. A wildcard is replaced by the addresses of this machine.
  std::vector<base::SocketAddress> addresses() const;
  // Offers hellos again that arrived before their link existed. It does so from a poller's handler.
  void linkAdded();
  std::size_t pending() const { return pending_.size(); }
  bool lackedSince(Clock::time_point then) const {
    return listener_ && listener_->lackedSince(then);
  }

 private:
  struct Pending {
    base::Fd fd;
    base::Poller::Id watch = 0;
    Clock::time_point until;
    HelloBytes bytes = {};
    std::size_t got = 0;
    base::Unproven::Place place = {};
  };
  using PendingPlace = std::list<Pending>::iterator;

  void add(base::Fd fd, base::Unproven::Place place);
  void onBytes(PendingPlace one);
  void offer(PendingPlace one);
  void drop(PendingPlace one);
  void offerAgain();
  void onTimer();
  void setTimer();

  base::Poller& poller_;
  OnHello offer_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<base::Listener> listener_;
  std::vector<base::SocketAddress> bound_;
  std::list<Pending> pending_;  // oldest first
  base::Poller::Id timer_ = 0, again_ = 0;
};

}  // namespace viaduct::tcp
