// Listens for data sockets and reads their hello. Threads: under the agent's lock.
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
  // Takes the socket if the hello is genuine and wanted.
  enum class HelloVerdict : std::uint8_t {
    kTaken,
    kRefused,  // never will be
    kUnknown,  // no such link: it may be a moment late, offered again by linkAdded()
  };
  using HelloBytes = std::array<std::byte, kHelloBytes>;
  using OnHello =
      std::function<HelloVerdict(const SocketHello& hello, const HelloBytes& bytes, base::Fd& fd)>;

  // Who has not said hello after `patience` is dropped.
  Acceptor(base::Poller& poller, std::chrono::milliseconds patience, OnHello offer)
      : poller_(poller), offer_(std::move(offer)), patience_(patience) {}
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  Status listen(const base::SocketAddress& at);
  // What peers connect to; a wildcard became the addresses of this machine.
  std::vector<base::SocketAddress> addresses() const;
  // Offers again, from a handler, what came before its link did.
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
  std::list<Pending> pending_;  // the oldest first
  base::Poller::Id timer_ = 0, again_ = 0;
};

}  // namespace viaduct::tcp
