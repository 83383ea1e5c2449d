// Which backend and rails carry which ops. Threads: under the agent's lock.
#pragma once

#include <vector>

#include "agent/bundle.h"
#include "core/op.h"
#include "core/plan.h"

namespace viaduct::agent {

class AgentImpl;
class PeerImpl;

// Divides planned ops among the backends that reach both memories and satisfy the requirement (the
// most preferred first). An error says what each backend said.
Result<std::vector<Bundle>> route(AgentImpl& agent, PeerImpl& peer, OpKind kind, core::OpList list,
                                  const core::Requirement& requirement);

}  // namespace viaduct::agent
