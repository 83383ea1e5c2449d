// The calls with which a peer tells its agent's parcels what it hears. Threads: under the agent's
// lock.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace viaduct::agent {

class PeerImpl;

class ParcelFrames {
 public:
  virtual ~ParcelFrames() = default;
  // A frame of the peer's session has come. An error ends the session.
  virtual Status heard(PeerImpl& peer, std::span<const std::byte> payload) = 0;
  // Fetches between the two agents that have a version and no end.
  virtual std::uint64_t running(const PeerImpl& peer) const = 0;
  // The session is over: its transfers and leases have ended.
  virtual void sessionOver(PeerImpl& peer, const Error& why) = 0;
};

}  // namespace viaduct::agent
