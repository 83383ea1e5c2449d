// Which backend and rails carry which ops. Threads: under the agent's lock.
#pragma once

#include <vector>

#include "agent/bundle.h"
#include "core/op.h"
#include "core/plan.h"

namespace viaduct::agent {

class AgentCore;
class PeerCore;

// Divides planned ops among the backends that reach both memories and satisfy the requirement (the
// most preferred first). An error says what each backend said.
Result<std::vector<Bundle>> route(AgentCore& agent, PeerCore& peer, OpKind kind, core::OpList list,
                                  const core::Requirement& requirement);

}  // namespace viaduct::agent
