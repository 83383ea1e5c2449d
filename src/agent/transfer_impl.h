// One transfer: its plan, and the post that is under way. Threads: with the agent's lock held
// exclusively, except where a comment says otherwise. In a shared section, the thread that has set
// the state to kRunning owns the transfer.
#pragma once

#include <viaduct/transfer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent_lock.h"
#include "agent/routes.h"
#include "agent/timing.h"
#include "core/op.h"
#include "core/plan.h"

namespace viaduct::agent {

class AgentImpl;
class PeerImpl;

// A rail's tag is the transfer's with the number of the slice in its low bits.
inline constexpr core::Tag kSliceMask = 0xffff;

// It begins at a cache line, as a Bundle does.
class alignas(64) TransferImpl final : public std::enable_shared_from_this<TransferImpl> {
 public:
  TransferImpl(std::shared_ptr<AgentImpl> agent, std::shared_ptr<PeerImpl> peer, OpKind kind,
               Selection local, Selection remote, TransferOptions options)
      : agent_(std::move(agent)),
        peer_(std::move(peer)),
        kind_(kind),
        local_(std::move(local)),
        remote_(std::move(remote)),
        options_(std::move(options)) {}

  // Lets go of the lock while it computes: a plan of millions of blocks holds nobody up.
  Status plan(AgentLock::Held& held);
  Status post(const PostOptions& options);  // takes the lock itself
  void cancel();                            // by the user
  bool running() const { return state() == TransferState::kRunning; }
  TransferState state() const { return state_.load(std::memory_order_acquire); }  // no lock

  // From the agent.
  void moved(const core::Moved& moved);
  void failed(core::Failed failed);
  bool offerAgain();  // what rails refused; true when there is nothing to offer any more
  bool uses(std::uint32_t local_slot) const;
  void abort(Error why);                          // stops posting, cancels, ends with `why`
  Clock::time_point due() const { return due_; }  // while it runs
  void overdue();

  AgentImpl& agent() { return *agent_; }
  const PeerImpl& peer() const { return *peer_; }
  TransferEnd end() const { return {state(), error_}; }
  Path path() const;
  Path carried() const;
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t ops() const { return total_ops_; }

 private:
  bool mayPostAtOnce(const PostOptions& options) const {
    return direct_.load(std::memory_order_relaxed) && !options.with_note && options.note.empty();
  }
  bool postAtOnce();
  bool moveAtOnce(CellCounts& counts);
  Status postExclusively(AgentLock::Held& held, const PostOptions& options);
  bool stillPlanned();
  void remember(std::vector<Bundle> bundles, std::span<const core::PinSpan> spans,
                std::uint64_t bytes);
  Bundle& bundleOf(core::Tag tag) {
    auto found = bundles_.begin();
    while (!found->has(tag & kSliceMask)) ++found;
    return *found;
  }
  bool allDone() const {
    for (const Bundle& bundle : bundles_)
      if (!bundle.done()) return false;
    return true;
  }
  void offer();
  void strand();
  void stopPosting();
  void start(const PostOptions& options);
  void pollOwnRails(AgentLock::Held& held);
  void expect(Clock::time_point due);
  void resetLinks();
  void endIfOver();
  void sayWhatMoved() const;
  void countErrorWithoutRail();
  void railLost(Bundle& bundle, core::Tag number, const Error& why);
  void stopTiming(TransferState state);
  void finish(TransferState state);

  const std::shared_ptr<AgentImpl> agent_;
  const std::shared_ptr<PeerImpl> peer_;
  const OpKind kind_;
  const Selection local_, remote_;
  const TransferOptions options_;

  // The plan.
  std::vector<Bundle> bundles_;
  Path carried_before_;  // by earlier plans
  std::uint64_t bytes_ = 0, total_ops_ = 0;
  // The posting thread may be able to copy by itself, and no callback is owed. Read without a lock.
  std::atomic<bool> direct_{false};
  std::uint64_t planned_epoch_ = 0, local_version_ = 0, remote_version_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> local_used_, remote_used_;  // generations

  // The post.
  std::atomic<TransferState> state_{TransferState::kIdle};
  core::Tag tag_ = 0;
  Timing::Timed timed_;
  std::uint64_t out_ = 0;  // ops that rails have and owe
  bool refused_ = false;   // by a rail, when last offered
  bool waiting_ = false;   // in the agent's list of transfers that wait for room
  bool stopping_ = false;  // no more posting: error_ says why
  bool forced_ = false;    // and the link ends with what is still out after the grace
  std::optional<Error> error_;
  std::optional<Error> rail_error_;  // of the last rail that was lost
  bool has_note_ = false;
  std::vector<std::byte> note_;
  Clock::time_point due_ = Clock::time_point::max();
};

}  // namespace viaduct::agent
