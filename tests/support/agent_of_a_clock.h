// Opens an agent whose time a test moves.
#pragma once

#include <viaduct/agent.h>

#include <memory>
#include <utility>

#include "agent/agent_impl.h"

namespace viaduct::agent {

struct AgentOfAClock {
  static Result<Agent> open(Settings settings, const base::MovableClock& clock) {
    VIADUCT_TRY(auto impl, AgentImpl::open(std::move(settings), &clock));
    return Agent(std::move(impl));
  }
  static Agent of(std::shared_ptr<AgentImpl> impl) { return Agent(std::move(impl)); }
};

}  // namespace viaduct::agent
