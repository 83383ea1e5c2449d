// Facts about the path of a connected socket. Threads: pure.
#pragma once

#include <viaduct/result.h>

#include <string>

namespace viaduct::agent {

struct SocketFacts {
  bool is_unix = false;
  int peer_pid = 0;          // in our PID namespace; 0: not visible, or TCP
  std::string remote = {};   // for messages
  std::string binding = {};  // equal at both ends and at no relay: see Handshake
};
Result<SocketFacts> socketFactsOf(int socket, bool dialer);

}  // namespace viaduct::agent
