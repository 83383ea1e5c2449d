// The calls with which a peer tells its agent's transfers what has changed. Threads: under the
// agent's lock.
#pragma once

#include <viaduct/result.h>

#include <cstdint>

namespace viaduct::agent {

class HeldLease;
class PeerImpl;

class Transfers {
 public:
  virtual ~Transfers() = default;
  // A peer has become ready or has announced a pin: transfers that wait for their peer
  // (TransferOptions::reach) try again, soon and without the lock.
  virtual void goOnReaching() = 0;
  // Ends the transfers that wait for this peer; null: for any peer.
  virtual void endReaching(const PeerImpl* peer, const Error& why) = 0;
  // Aborts the running transfers under this lease.
  virtual void abortUnder(const HeldLease& lease, const Error& why) = 0;
  // Fails the running transfers that use this pin of the peer, which has withdrawn it. A later pin
  // may get its number and its address, and none of their ops may reach the later pin.
  virtual void failUsing(const PeerImpl& peer, std::uint32_t remote_slot) = 0;
  // The running transfers of this peer: their number, and their bytes.
  struct RunningTransfers {
    std::uint64_t transfers = 0, bytes = 0;
  };
  virtual RunningTransfers runningWith(const PeerImpl& peer) = 0;
  // Fails the running transfers of this peer, whose links are closed already.
  virtual void failTransfersOf(const PeerImpl& peer, const Error& why) = 0;
};

}  // namespace viaduct::agent
