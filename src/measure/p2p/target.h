// The target of `viaduct p2p`. It gives memory to one initiator at a time and reports its events.
// Threads: one.
#pragma once

#include <viaduct/agent.h>

#include <functional>
#include <string>
#include <vector>

#include "base/stop.h"

namespace viaduct::measure::p2p {

// Receives a line about each event: "node-b connected", "node-b disconnected".
using P2pTold = std::function<void(const std::string& line)>;

// Answers requests until `stop` is set. `rails` is the agent's Settings::rails.
void serveP2p(Agent& agent, std::vector<std::string> rails, P2pTold told,
              const base::StopFlag& stop);

}  // namespace viaduct::measure::p2p
