// What a connected socket runs over. Threads: pure.
#pragma once

#include <viaduct/result.h>

#include <string>

namespace viaduct::agent {

struct SocketFacts {
  bool is_unix = false;
  int peer_pid = 0;          // as our PID namespace sees it; 0: unseen, or TCP
  std::string remote = {};   // for messages
  std::string binding = {};  // the same at both ends, and only there: see Handshake
};
Result<SocketFacts> socketFactsOf(int socket, bool dialer);

}  // namespace viaduct::agent
