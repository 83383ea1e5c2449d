// The agent's part of staged transfers: rings of pinned memory, and hops as transfers of its own.
// Threads: under the agent's exclusive lock.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "base/checked_copy.h"
#include "base/shared_memory.h"
#include "core/backend.h"
#include "move/staging/staging_host.h"

namespace viaduct::agent {

class AgentImpl;
class PeerImpl;
class TransferImpl;

class Stages {
 public:
  explicit Stages(AgentImpl& agent) : agent_(agent) {}
  // The services for the link of this session.
  std::unique_ptr<move::StagingHost> hostFor(core::LinkHost& session);

  // Pinned memory. It is used again once `left` says that no peer and no hop touches it any more.
  struct PooledRing {
    base::SharedMemory memory;  // empty: the ring is on a GPU
    Segment gpu_memory;
    std::optional<std::uint32_t> gpu;
    move::Ring ring;
    bool used = false;
    std::function<bool()> left = {};
  };
  Result<PooledRing*> takeRing(std::optional<std::uint32_t> gpu);
  // Whether the agent is connected with itself. It dials itself at the first call.
  bool reachesItself();
  const std::shared_ptr<PeerImpl>& itself() const { return itself_; }
  // Copies now between chunks of a ring, at the local end of the ops, and host memory of this
  // agent, at the remote end.
  Status copy(OpKind kind, std::span<const core::Op> ops);

 private:
  AgentImpl& agent_;
  std::list<PooledRing> rings_;
  std::shared_ptr<PeerImpl> itself_;
  std::optional<base::CheckedCopy> copy_;  // opened at the first copy
};

}  // namespace viaduct::agent
