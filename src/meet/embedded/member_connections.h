// The server's connections to its members, as its decisions about groups and names use them.
// Threads: the server's.
#pragma once

#include <cstdint>
#include <string>

#include "meet/embedded/frame.h"

namespace viaduct::meet::embedded {

using GuestId = std::uint64_t;  // a connection that has proved itself; never used twice

class MemberConnections {
 public:
  virtual ~MemberConnections() = default;
  // To one that is gone: nothing happens.
  virtual void send(GuestId to, const PacketPtr& packet) = 0;
  // Asks for a sign of life: the pong has the number that comes back.
  virtual std::uint64_t ping(GuestId to) = 0;
  // A line for people.
  virtual void say(const std::string& line) = 0;
};

}  // namespace viaduct::meet::embedded
