// Which backend and rails carry which ops. Threads: under the agent's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/op.h"
#include "core/plan.h"

namespace viaduct::agent {

class AgentCore;
class PeerCore;

// One rail's share of a transfer.
struct Lane {
  core::Rail* rail = nullptr;
  core::Link* link = nullptr;
  std::string_view backend;
  std::string_view way;
  std::string rail_name;
  std::vector<core::Op> ops;
  std::size_t posted = 0;                        // ops that the rail has taken in this post
  std::uint64_t moved_ops = 0, moved_bytes = 0;  // of this post
};

// Divides planned ops among the backends that reach both memories and satisfy the requirement (the
// most preferred first) and among the rails of each. An error says what each backend said.
Result<std::vector<Lane>> route(AgentCore& agent, PeerCore& peer, OpKind kind,
                                std::vector<core::Op> ops, const core::Requirement& requirement);

}  // namespace viaduct::agent
