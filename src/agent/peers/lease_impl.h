// The two ends of a lease, behind Lease and BorrowedLease. Threads: under the agent's lock, except
// state(). PeerLeases changes them.
#pragma once

#include <viaduct/lease.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.h"

namespace viaduct::agent {

class Basis;
class PeerImpl;

inline bool isOutcome(LeaseState state) { return state >= LeaseState::kReturned; }

// The common part of both ends of a lease.
class LeaseEnd {
 public:
  LeaseEnd(std::shared_ptr<Basis> basis, std::shared_ptr<PeerImpl> peer, std::uint64_t number,
           MemoryAccess access, Blocks blocks, std::function<void(LeaseState)> on_end);
  ~LeaseEnd();
  LeaseEnd(const LeaseEnd&) = delete;
  LeaseEnd& operator=(const LeaseEnd&) = delete;

  LeaseState state() const { return state_.load(std::memory_order_acquire); }  // needs no lock
  LeaseState outcome() const { return outcome_; }  // while it is ending: the outcome to come
  bool isLive() const { return state_.load(std::memory_order_relaxed) == LeaseState::kLive; }
  std::uint64_t number() const { return number_; }
  MemoryAccess access() const { return access_; }
  const Blocks& blocks() const { return blocks_; }
  Basis& basis() const { return *basis_; }
  PeerImpl& peer() const { return *peer_; }
  const std::shared_ptr<PeerImpl>& sharedPeer() const { return peer_; }
  Result<LeaseState> wait(Deadline until) const;  // takes the lock
  // The error of a call that needs a live lease.
  Error stale(const char* operation) const;

  void beginToEnd(LeaseState outcome);
  void end(LeaseState outcome);

 private:
  const std::shared_ptr<Basis> basis_;
  const std::shared_ptr<PeerImpl> peer_;
  const std::uint64_t number_;
  const MemoryAccess access_;
  const Blocks blocks_;
  std::function<void(LeaseState)> on_end_;
  mutable base::Watchers watchers_;  // of the outcome
  std::atomic<LeaseState> state_{LeaseState::kLive};
  LeaseState outcome_ = LeaseState::kLive;  // from beginToEnd() on
  Clock::time_point refused_since_ = {};    // from beginToEnd() on
};

// The owner's end.
class LentLease final : public LeaseEnd, public std::enable_shared_from_this<LentLease> {
 public:
  using LeaseEnd::LeaseEnd;
  std::uint64_t epoch = 0;                        // of the session
  std::array<std::uint8_t, 16> borrower_id = {};  // as in the peer's hello
  std::vector<Extent> ranges = {};                // of the blocks
  // Live: when it expires. Ending: when the borrower has to have answered.
  Clock::time_point due = {};
};

// The borrower's end.
class HeldLease final : public LeaseEnd, public std::enable_shared_from_this<HeldLease> {
 public:
  using LeaseEnd::LeaseEnd;
  // Count a post under this lease: call enter() when it starts, and leave() when it ends.
  void enter() { ++running_; }
  void leave();
  bool running() const { return running_ != 0; }
  // The error of a post that came too late. Counts it.
  Error refusal(const char* operation) const;

 private:
  std::uint64_t running_ = 0;
};

// The error of an access under a lease that has ended. `when` is the end of a sentence.
Error staleError(const char* operation, std::uint64_t number, LeaseState outcome,
                 const std::string& when, const std::string& peer);
// The text of a duration before some moment, as "3 ms before".
std::string ago(Duration late);

}  // namespace viaduct::agent
