// Chooses the backend and the rails for each op of a transfer. Threads: under the agent's lock.
#pragma once

#include <vector>

#include "agent/traffic/bundle.h"
#include "core/op.h"
#include "core/plan.h"

namespace viaduct::agent {

// Whether a path over this backend meets the requirement.
bool satisfies(const core::Capabilities& can, const core::Requirement& required);

class Basis;
class PeerImpl;

// Divides planned ops among backends. Each pair of pins gets the most preferred backend that
// reaches both memories and satisfies the requirement. An error has the reason of each backend.
Result<Bundles> route(Basis& basis, PeerImpl& peer, OpKind kind, core::OpList list,
                      const core::Requirement& requirement);

}  // namespace viaduct::agent
