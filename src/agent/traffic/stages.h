// The agent's part of staged transfers: rings of pinned memory, and hops as postings. A ring
// belongs to one session. Its memory is freed with the session and never used again, because the
// former peer may still map it. Threads: under the agent's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/checked_copy.h"
#include "base/shared_memory.h"
#include "core/backend.h"
#include "move/staging/staging_host.h"

namespace viaduct::agent {

class Basis;
class PeerImpl;
class Peers;
class Traffic;

class Stages {
 public:
  Stages(Peers& peers, Traffic& traffic);
  // The services for the link of this session.
  std::unique_ptr<move::StagingHost> hostFor(core::LinkHost& session);

  // The pinned memory of a ring.
  struct RingMemory {
    base::SharedMemory host;  // empty: the ring is on a GPU
    Segment gpu = {};
    move::StagingRing ring = {};
  };
  // Null: the other rings of this agent leave too little of Settings::staging_memory.
  Result<std::unique_ptr<RingMemory>> makeRing(const core::Audience& audience,
                                               std::optional<std::uint32_t> gpu);
  bool hasRoom() const { return memory_.left() >= ringBytes(); }
  // Withdraws the ring from the peer of its session. freeLeft() frees it once `hops_ended`.
  void freeRing(std::unique_ptr<RingMemory> ring, PeerImpl& peer, std::function<bool()> hops_ended);
  void freeLeft() {
    if (!leaving_.empty()) freeLeftNow();
  }
  // Keeps the rings until the process ends: a peer, the kernel or a GPU may still copy from or to
  // them.
  void keepLeft();
  // Copies now between chunks of a ring, at the local end of the ops, and host memory of this
  // agent, at the remote end.
  Status copy(OpKind kind, std::span<const core::Op> ops);

 private:
  struct LeavingRing {
    std::unique_ptr<RingMemory> memory;
    std::weak_ptr<PeerImpl> peer;
    std::function<bool()> hops_ended;
    bool unpinned = false;
    bool stuck = false;  // it is unpinned, but a device may still use it
  };
  std::uint64_t ringBytes() const { return shape_.chunk_bytes * shape_.chunks; }
  void freeLeftNow();
  bool unpin(LeavingRing& leaving);

  Basis& basis_;
  Peers& peers_;
  Traffic& traffic_;
  const move::StagingRing shape_;  // the size of each ring
  base::Budget memory_;
  std::vector<LeavingRing> leaving_;
  std::optional<base::CheckedCopy> copy_;  // opened at the first copy
};

}  // namespace viaduct::agent
