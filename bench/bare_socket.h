// The floor of one thread that sends: a plain loopback socket, blocking, with a thread at its other
// end.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "harness/program.h"
#include "tcp_floor_bare.h"

namespace viaduct::bench {

// A loopback socket whose other end receives and acknowledges each `bytes`.
class BareSocket {
 public:
  explicit BareSocket(std::uint64_t bytes) : from_(bytes, 'x'), receiver_([this] { receive(); }) {}
  ~BareSocket() { ::shutdown(pair_.a.get(), SHUT_RDWR); }
  BareSocket(const BareSocket&) = delete;
  BareSocket& operator=(const BareSocket&) = delete;

  void step() {
    for (std::size_t sent = 0; sent < from_.size();) {
      sent += static_cast<std::size_t>(
          must(::send(pair_.a.get(), from_.data() + sent, from_.size() - sent, 0), "send"));
    }
    char ack = 0;
    if (::recv(pair_.a.get(), &ack, 1, 0) != 1) dieOf("recv");
  }

 private:
  void receive() {
    std::vector<char> into(from_.size());
    while (::recv(pair_.b.get(), into.data(), into.size(), MSG_WAITALL) ==
           static_cast<ssize_t>(into.size()))
      if (::send(pair_.b.get(), "a", 1, MSG_NOSIGNAL) != 1) return;
  }

  BarePair pair_ = BarePair::make();
  const std::vector<char> from_;
  std::jthread receiver_;  // last, because it uses the others
};

}  // namespace viaduct::bench
