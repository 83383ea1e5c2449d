// The server's connections to its members, as GroupState and Directory use them. Threads: the
// server's.
#pragma once

#include <cstdint>
#include <string>

#include "meet/groups/group_messages.h"

namespace viaduct::meet::groups {

using GuestId = std::uint64_t;  // a connection that has proved itself; never used twice

class MemberConnections {
 public:
  virtual ~MemberConnections() = default;
  // Does nothing if the connection is gone.
  virtual void send(GuestId to, const PacketPtr& packet) = 0;
  // Sends a ping and returns its number, which the pong repeats.
  virtual std::uint64_t ping(GuestId to) = 0;
  // Reports a line for people.
  virtual void say(const std::string& line) = 0;
};

}  // namespace viaduct::meet::groups
