// Planned ops that are posted: bundles, until rails have given all of their ops back. A transfer is
// one. Each hop of a staged transfer (move/staging/) is another. Threads: with the agent's lock
// held, except running() and state().
#pragma once

#include <viaduct/path.h>
#include <viaduct/statistics.h>
#include <viaduct/transfer.h>

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agent/traffic/bundle.h"
#include "agent/traffic/hooked_list.h"
#include "core/op.h"

namespace viaduct::agent {

class Basis;
class HeldLease;
class PeerImpl;
class Traffic;

class Posting : public core::Sink {
 public:
  Posting(const Posting&) = delete;
  Posting& operator=(const Posting&) = delete;

  bool running() const { return state() == TransferState::kRunning; }
  TransferState state() const { return state_.load(std::memory_order_acquire); }
  const PeerImpl& peer() const { return *peer_; }
  const std::optional<Error>& error() const { return error_; }
  Clock::time_point due() const { return due_; }  // the current deadline, while it runs

  void moved(const core::Moved& moved) final;
  void failed(core::Failed failed) final;
  void staged(core::Staged staged) final { bundleOf(staged.slice).staged(std::move(staged.share)); }

  // Offers the slices that no rail has.
  void offer();
  // Stops posting and cancels the slices. Ends with `why` when rails have given all ops back,
  // unless all are moved already.
  void fail(Error why);
  void abort(Error why);  // like fail(), and ends the peer's session if that lasts too long
  // Adds the slices that rails have of this posting to `queues`, by RailCounts::number.
  void addTo(std::span<std::array<RailQueue, kPriorities>> queues, Clock::time_point now) const;
  virtual std::uint64_t bytes() const { return 0; }  // a transfer's bytes; 0 for a hop
  virtual void overdue();
  virtual void peerLost(const Error& why) { abort(why); }
  virtual bool uses(std::uint32_t /*local_slot*/) const { return false; }
  virtual bool usesRemote(std::uint32_t remote_slot) const;
  virtual bool isUnder(const HeldLease& /*lease*/) const { return false; }

  // The pointers that put this posting into the list of running postings (Traffic).
  Hook<Posting> running_hook;

 protected:
  Posting(Traffic& traffic, std::shared_ptr<PeerImpl> peer, OpKind kind, Priority priority);
  ~Posting() { assert(!running_hook.in && "rails still have ops of it"); }

  void take(Bundles bundles);
  // Begins to run. offer() posts the first ops.
  void begin();
  // Stops running; called within over(). Other threads then see `state`.
  void end(TransferState state);
  // No op is with a rail any more: all are moved, or error_ says why not.
  virtual void over() = 0;
  void endIfOver();
  void stopPosting();
  void expect(Clock::time_point due);
  void countErrorWithoutRail(Code code);
  TransferState outcome() const;
  void addTo(Path& path) const {
    for (const Bundle& bundle : bundles_) bundle.addTo(path);
  }
  // The bytes that rails have acknowledged.
  std::vector<core::Stretch> landed() const {
    std::vector<core::Stretch> out;
    for (const Bundle& bundle : bundles_) bundle.addLanded(out);
    return out;
  }

  Traffic& traffic_;
  const std::shared_ptr<Basis> basis_;  // keeps the agent alive
  std::shared_ptr<PeerImpl> peer_;
  const OpKind kind_;
  const Priority priority_;
  Bundles bundles_;
  std::uint64_t total_ops_ = 0;
  std::atomic<TransferState> state_{TransferState::kIdle};
  std::uint64_t out_ = 0;  // ops that rails have accepted and not yet completed
  bool stopping_ = false;  // no more slices are posted, because of error_
  std::optional<Error> error_;
  Clock::time_point due_ = Clock::time_point::max();
  Clock::time_point begun_ = Clock::time_point::max();  // when it began, unless it ended in post()

 private:
  Bundle& bundleOf(const core::SliceOf& slice) {
    auto found = bundles_.begin();
    while (!found->has(slice.number)) ++found;
    return *found;
  }
  bool allDone() const {
    for (const Bundle& bundle : bundles_)
      if (!bundle.done()) return false;
    return true;
  }
  void strand();
  void railLost(Bundle& bundle, std::uint32_t number, const Error& why);
  void resetLinks();

  // Aborted: if ops are still out after part of the grace, the peer's session ends.
  bool forced_ = false;
  std::optional<Error> rail_error_;  // of the last rail that was lost
};

}  // namespace viaduct::agent
