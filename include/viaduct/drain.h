// Reports of Agent::drain(): the work that it still waits for. Threads: plain values.
#pragma once

#include <viaduct/deadline.h>

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct {

// The work between this agent and one peer that has not ended.
struct DrainLeft {
  std::string peer = {};
  bool answered =
      false;  // the peer has answered the announcement; before, its figures below are unknown
  std::uint64_t transfers = 0, bytes = 0;              // running transfers of this agent
  std::uint64_t their_transfers = 0, their_bytes = 0;  // of the peer, by its last report
  std::uint64_t lent = 0, borrowed = 0;                // leases
  std::uint64_t streams = 0;                           // open streams of marks
  std::uint64_t fetches = 0;       // running fetches of parcels, of this agent and of the peer
  std::uint64_t unsent_bytes = 0;  // notes and messages that the peer's socket has not taken yet
};

struct DrainState {
  bool draining = false;
  Duration remaining{};              // until the deadline, zero after it
  std::vector<DrainLeft> left = {};  // the peers that the drain waits for
};

}  // namespace viaduct
