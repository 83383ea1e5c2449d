// Sends requests to a target and waits for its answers. Threads: one.
#pragma once

#include <viaduct/agent.h>

#include <string>

#include "base/stop.h"
#include "measure/p2p/request.h"

namespace viaduct::measure::p2p {

class Asker {
 public:
  Asker(Agent& agent, Peer peer, const base::StopFlag& stop)
      : agent_(agent), peer_(std::move(peer)), stop_(stop) {}

  // Waits for the answer. Fails with kPeerLost if the target is gone, and with kCancelled if `stop`
  // is set.
  Result<std::string> ask(P2pRequest request, Deadline until);
  // Tells the target that this end leaves, if the target is still there.
  void leave();
  const Peer& peer() const { return peer_; }

 private:
  Agent& agent_;
  Peer peer_;
  const base::StopFlag& stop_;
  std::uint64_t last_ = 0;
};

}  // namespace viaduct::measure::p2p
