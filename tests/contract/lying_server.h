// A program that has the port of a meeting place. It sends each connection the same bytes, and then
// closes it or stays silent. Threads: one of its own.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/loop.h"
#include "base/net/address.h"
#include "base/net/listener.h"

namespace viaduct::testing {

class LyingServer {
 public:
  LyingServer(std::string answer, bool closes)
      : answer_(std::move(answer)), closes_(closes), loop_(*base::Loop::start("liar")) {
    const auto any = *base::resolve(*base::parseHostPort("127.0.0.1:0"));
    listening_ = *base::listenAt(any.front(), true);
    address_ = base::localAddress(listening_.get())->text();
    const auto held = loop_->hold();
    static_cast<void>(
        loop_->poller().watch(listening_.get(), EPOLLIN, [this](std::uint32_t) { accept(); }));
  }
  ~LyingServer() { loop_->stop(); }
  LyingServer(const LyingServer&) = delete;
  LyingServer& operator=(const LyingServer&) = delete;
  const std::string& address() const { return address_; }

 private:
  void accept() {
    for (;;) {
      base::Fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      static_cast<void>(::send(socket.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL));
      if (!closes_) silent_.push_back(std::move(socket));
    }
  }

  const std::string answer_;
  const bool closes_;
  std::string address_;
  base::Fd listening_;
  std::vector<base::Fd> silent_;
  const std::unique_ptr<base::Loop> loop_;
};

}  // namespace viaduct::testing
