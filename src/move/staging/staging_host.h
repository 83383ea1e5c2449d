// The services that the agent gives to the staging of one peer's session. Threads: with the agent's
// lock held.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/memory.h>
#include <viaduct/path.h>
#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/op.h"
#include "core/pin_rights.h"
#include "core/plan.h"

namespace viaduct::move {

// Pinned host memory in chunks of equal size.
struct StagingRing {
  std::uint64_t address = 0;
  std::uint64_t chunk_bytes = 0;
  std::uint32_t chunks = 0;
  std::uint32_t pin = 0;  // its slot in the table of the agent that owns it
};

// The result of one hop.
struct HopEnd {
  std::optional<Error> error = {};
  std::vector<PathShare> shares = {};
  // The copy was given up, and may still touch the chunk. So the ring is given back: it is freed
  // once StagingHost::settling() allows it.
  bool unsettled = false;
};

// Starts hops, each for one chunk of a ring, and is told of their ends. It outlives its hops.
class HopOwner {
 public:
  // Called once for each hop, at the earliest inside StagingHost::start(), with the same lock held.
  // It may only record the end.
  virtual void hopEnded(std::uint32_t chunk, HopEnd end) = 0;

 protected:
  HopOwner() = default;
  HopOwner(const HopOwner&) = delete;
  HopOwner& operator=(const HopOwner&) = delete;
  ~HopOwner() = default;
};

// One hop of a chunk: a copy that the agent does. The destructor cancels a hop that still runs, and
// then nobody is told of its end. StagingHost::settling() waits for such hops.
class Hop {
 public:
  virtual ~Hop() = default;
  virtual void cancel() = 0;
};

class StagingHost {
 public:
  virtual ~StagingHost() = default;
  virtual Clock::time_point now() const = 0;
  virtual const PinInfo* ownPin(std::uint32_t slot) const = 0;  // null: there is no such pin
  // The right of this session's peer to a pin of this agent.
  virtual core::PinRight peersRight(std::uint32_t slot) const = 0;
  // The number that the owner of a pin, this agent or the peer, gives to no other pin. 0: there is
  // no such pin.
  virtual std::uint64_t ownGeneration(std::uint32_t slot) const = 0;
  virtual std::uint64_t peerGeneration(std::uint32_t slot) const = 0;
  // Returns a ring in host memory or on a GPU, which belongs to this session. Only the session's
  // peer may reach a `lent` ring, and nobody may reach another ring. None: the rings of this agent
  // have used up their memory.
  virtual Result<std::optional<StagingRing>> ring(bool lent, std::optional<std::uint32_t> gpu) = 0;
  // Frees a ring, named by its pin. Call it when no hop and no op of the peer uses the ring any
  // more. The destructor of the host frees all rings.
  virtual void giveBack(std::uint32_t pin) = 0;
  // Whether ring() finds memory now.
  virtual bool hasRoom() const = 0;
  // How long a post may wait: Settings::deadline.
  virtual Duration deadline() const = 0;
  // Whether a backend that copies memory of GPUs, and meets `required`, has a link to the peer.
  virtual bool sharesGpus(const core::Requirement& required) const = 0;
  // Whether such a link reaches both pins.
  virtual bool reachesGpus(OpKind kind, std::uint32_t local_pin, std::uint32_t remote_pin,
                           const core::Requirement& required) const = 0;
  // The other end of a hop: the agent's own storage, its own host memory, or the peer's memory.
  enum class To : std::uint8_t { kStorage, kMemory, kPeer };
  // Starts a copy of these ops for a chunk of the owner. Their local end is memory of this agent,
  // and the path meets `required`.
  virtual Result<std::unique_ptr<Hop>> start(To to, OpKind kind, core::OpList list,
                                             const core::Requirement& required, HopOwner& owner,
                                             std::uint32_t chunk) = 0;
  // A number for hops that write one object together (core::OpList::whole).
  virtual std::uint64_t newWhole() = 0;
  // Call it when no further hop has this number. An incomplete object is then abandoned.
  virtual void giveUp(std::uint64_t whole) = 0;
  // True once no hop that was dropped or given up touches memory any more. The function may outlive
  // the host.
  virtual std::function<bool()> settling() const = 0;
};

}  // namespace viaduct::move
