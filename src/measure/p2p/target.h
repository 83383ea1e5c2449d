// The target of `viaduct p2p`. It gives memory to one initiator at a time and reports its events.
// Threads: one.
#pragma once

#include <viaduct/agent.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/stop.h"
#include "measure/result/report.h"

namespace viaduct::measure::p2p {

// Receives a line about each event: "node-b connected", "node-b disconnected".
using P2pTold = std::function<void(const std::string& line)>;

// Answers requests until `stop` is set. Does not end the session with the initiator, because the
// agent's drain does.
// `settings` are the agent's. `gpu`: the GPU whose memory initiators reach; nothing: host memory.
void serveP2p(Agent& agent, const Settings& settings, std::optional<std::uint32_t> gpu,
              P2pTold told, const base::StopFlag& stop, Build build = {});

}  // namespace viaduct::measure::p2p
