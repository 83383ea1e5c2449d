// The leases between this agent and one peer, in one session: those that it lends, and those that
// it has borrowed. docs/design/0036-leases.md. Threads: under the agent's lock.
#pragma once

#include <viaduct/lease.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/peers/lease_impl.h"
#include "agent/peers/number_set.h"
#include "agent/session/frame.h"
#include "agent/session/lease_ticket.h"
#include "base/poller.h"
#include "core/plan.h"

namespace viaduct::agent {

class Peers;

class PeerLeases {
 public:
  // The most live leases that an agent lends to one peer.
  static constexpr std::size_t kMostLent = std::size_t{1} << 16U;

  PeerLeases(Peers& peers, PeerImpl& peer);
  PeerLeases(const PeerLeases&) = delete;
  PeerLeases& operator=(const PeerLeases&) = delete;
  ~PeerLeases() = default;

  // The owner's end. `goes_on`: the lease is for work that the peer has begun. It is lent even if
  // this end is not ready yet, or an end drains.
  Result<std::shared_ptr<LentLease>> lend(TakenBlocks taken, LeaseOptions options,
                                          bool goes_on = false);
  base::Bytes ticketOf(const LentLease& lease) const;
  Status renew(LentLease& lease, Duration duration);
  // Asks the borrower to end a live lease. The lease has its outcome once the borrower has
  // answered.
  void endLent(LentLease& lease, LeaseState outcome);
  // Revokes all leases of this memory, because it is withdrawn.
  void revokeWithin(const Extent& memory);
  // Revokes all lent leases, and gives all borrowed ones back.
  void endAll();
  std::size_t lent() const { return lent_.size(); }
  std::size_t borrowed() const { return held_.size(); }

  // The borrower's end. `on_end` runs as LeaseOptions::on_end does.
  Result<std::shared_ptr<HeldLease>> borrow(LeaseTicket ticket,
                                            std::function<void(LeaseState)> on_end);
  void giveBack(HeldLease& lease);
  // Ends a lease under which no post runs any more, and tells the owner.
  void settle(HeldLease& lease);

  // Handles a frame of the peer. An error ends the session.
  Status heard(FrameType type, std::span<const std::byte> payload);
  // Ends all leases as kPeerLost, after the session and its transfers here have ended.
  void sessionOver();

 private:
  using DueLease = std::pair<Clock::time_point, LentLease*>;
  struct EndedLease {
    std::uint64_t number;
    LeaseState outcome;
    Clock::time_point at;
  };

  core::PinMap reachedPins(MemoryAccess access) const;
  Status mayLend(const std::vector<Extent>& ranges, MemoryAccess access) const;
  Error notCovered(std::uint64_t address) const;
  void setDue(LentLease& lease, Clock::time_point due);
  void arm();
  void expire();
  void endOverdue();
  void finishLent(LentLease& lease, LeaseState outcome);
  Status checkTicket(const LeaseTicket& ticket) const;
  Error endedBefore(const LeaseTicket& ticket) const;
  void rememberEnded(std::uint64_t number, LeaseState outcome);
  void finishHeld(HeldLease& lease, LeaseState outcome);
  Status heardEnded(std::span<const std::byte> payload);
  Status heardAnswer(FrameType type, std::span<const std::byte> payload);

  Basis& basis_;
  Peers& peers_;
  PeerImpl& peer_;

  std::uint64_t last_number_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<LentLease>> lent_;  // until their outcome
  std::set<DueLease> due_;                                              // the same, by due time
  base::Poller::Id timer_ = 0;
  Clock::time_point timer_at_ = Clock::time_point::max();

  std::unordered_map<std::uint64_t, std::shared_ptr<HeldLease>> held_;  // until their outcome
  NumberSet ended_;                // all leases of the peer that have ended, also unused ones
  std::deque<EndedLease> recent_;  // the last of them
};

}  // namespace viaduct::agent
