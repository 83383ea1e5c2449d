// Facts about the path of a connected socket. Threads: pure.
#pragma once

#include <viaduct/result.h>

#include <string>

namespace viaduct::agent {

struct SocketFacts {
  bool is_unix = false;
  int peer_pid = 0;         // in our PID namespace; 0: not visible, or TCP
  std::string remote = {};  // for messages
  // Names the path for the handshake's proofs, alike at both ends. Over a Unix socket: its network
  // namespace and name, which a relay cannot copy. Over TCP: always "tcp".
  std::string binding = {};
};
Result<SocketFacts> socketFactsOf(int socket, bool dialer);

}  // namespace viaduct::agent
