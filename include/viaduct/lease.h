// Leases: the right of one peer to reach a set of pinned blocks for a time. After the end of a
// lease, an access under it is an error, never wrong data (docs/leases.md). Threads: call from any.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/deadline.h>
#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace viaduct {

namespace agent {
class LentLease;
class HeldLease;
}  // namespace agent

enum class LeaseState : std::uint8_t {
  kLive,
  kEnding,    // accesses are refused; those that run have not all ended
  kReturned,  // the outcomes, from here on: the borrower gave it back
  kExpired,
  kRevoked,   // by the owner, or with the pin of its memory
  kPeerLost,  // the session with the other end is over
};
const char* leaseStateName(LeaseState state);

struct LeaseOptions {
  // kReadWrite: the peer may read and write, and no other live lease shares a byte with this one.
  MemoryAccess access = MemoryAccess::kReadOnly;
  Duration duration = std::chrono::seconds(30);  // on the owner's steady clock
  // Runs once, with the outcome, on a thread of the agent or one that polls, waits or closes the
  // agent. It must not block.
  std::function<void(LeaseState)> on_end = {};
};

// The owner's end of a lease. The destructor calls revoke().
class Lease {
 public:
  explicit Lease(std::shared_ptr<agent::LentLease> impl);
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();

  std::uint64_t number() const;  // counts the leases to this peer in this session, from 1
  // Names the lease and its blocks. Give these bytes to the peer, which passes them to
  // Agent::borrow().
  std::vector<std::byte> ticket() const;
  // The lease now ends this long from now. Fails with kStale if it is ending or has ended.
  Status renew(Duration duration);
  // Ends the lease, and waits until no access of the peer touches the blocks any more. After a peer
  // that does not answer for Settings::grace, its session is over. kPeerLost: the peer was stopped
  // inside a copy. It may still touch the blocks until its Peer::settled() is true.
  Status revoke();
  LeaseState state() const;  // takes no lock
  // Waits for the outcome. Once it is kReturned, kExpired or kRevoked, the blocks may be used
  // again. After kPeerLost, revoke() says when.
  Result<LeaseState> wait(Deadline until) const;

 private:
  std::shared_ptr<agent::LentLease> impl_;
};

// The borrower's end of a lease. The destructor calls giveBack().
class BorrowedLease {
 public:
  explicit BorrowedLease(std::shared_ptr<agent::HeldLease> impl);
  BorrowedLease(const BorrowedLease&) = delete;
  BorrowedLease& operator=(const BorrowedLease&) = delete;
  BorrowedLease(BorrowedLease&&) noexcept;
  BorrowedLease& operator=(BorrowedLease&&) noexcept;
  ~BorrowedLease();

  std::uint64_t number() const;
  MemoryAccess access() const;
  // The lent blocks, in the order in which the owner named them. Agent::plan() takes positions in
  // this list.
  const Blocks& blocks() const;
  // Returns the lease to its owner, once its running posts have ended. New posts are refused.
  void giveBack();
  LeaseState state() const;  // takes no lock
  Result<LeaseState> wait(Deadline until) const;

 private:
  friend class Agent;
  std::shared_ptr<agent::HeldLease> impl_;
};

}  // namespace viaduct
