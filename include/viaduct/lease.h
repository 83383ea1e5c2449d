// Leases: the right of one peer to reach a set of pinned blocks for a time. An access under a lease
// moves the bytes that were lent, or fails (docs/leases.md). Threads: call from any.
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
  kEnding,    // no longer live, but accesses that began before may still run
  kReturned,  // the outcomes, from here on: the borrower gave it back
  kExpired,
  kRevoked,   // by the owner, or with the pin of its memory
  kPeerLost,  // the session with the other end is over
};
const char* leaseStateName(LeaseState state);

struct LeaseOptions {
  // kReadOnly: other leases for reading may share the bytes. kReadWrite: the peer may read and
  // write, and no other live lease shares a byte.
  MemoryAccess access = MemoryAccess::kReadOnly;
  Duration duration = std::chrono::seconds(30);  // on the owner's steady clock
  // Runs once, with the outcome, on a thread of the agent or one that polls, waits or closes the
  // agent. It must not block.
  std::function<void(LeaseState)> on_end = {};
};

// The owner's end of a lease. The destructor calls revoke(), and only logs its error. A program
// that has to know whether the blocks are free calls revoke() itself.
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
  // Makes the lease end `duration` from now. Fails with kStale if it is ending or has ended.
  Status renew(Duration duration);
  // Ends the lease, and waits until no transfer under it accesses the blocks any more. If the peer
  // does not answer within Settings::grace, its session ends, and revoke() waits at most as long
  // again. kPeerLost: the peer was stopped inside a copy. It may still access the blocks until
  // Peer::settled() is true.
  Status revoke();
  LeaseState state() const;  // takes no lock
  // Waits for the outcome. Once it is kReturned, kExpired or kRevoked, the blocks may be used
  // again. After kPeerLost, they may once Peer::settled() is true or revoke() succeeds.
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
  // Refuses new posts and does not block. The lease is returned once its running posts have ended.
  void giveBack();
  LeaseState state() const;  // takes no lock
  Result<LeaseState> wait(Deadline until) const;

 private:
  friend class Agent;
  std::shared_ptr<agent::HeldLease> impl_;
};

}  // namespace viaduct
