// One transfer: its plan, and the current post. Threads: with the agent's lock held exclusively,
// unless a comment says otherwise. In a shared section of that lock, the thread that has set
// `claimed_` owns the transfer.
#pragma once

#include <viaduct/transfer.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent_lock.h"
#include "agent/block_digester.h"
#include "agent/hooked_list.h"
#include "agent/lease_impl.h"
#include "agent/routes.h"
#include "agent/timing.h"
#include "base/attempt.h"
#include "core/op.h"
#include "core/plan.h"

namespace viaduct::agent {

class AgentImpl;
class PeerImpl;

// It begins at a cache line, as a Bundle does.
class alignas(64) TransferImpl final : public core::Sink,
                                       public std::enable_shared_from_this<TransferImpl> {
 public:
  TransferImpl(std::shared_ptr<AgentImpl> agent, std::shared_ptr<PeerImpl> peer, OpKind kind,
               Selection local, Selection remote, TransferOptions options,
               std::shared_ptr<HeldLease> lease = nullptr)
      : agent_(std::move(agent)),
        peer_(std::move(peer)),
        kind_(kind),
        local_(std::move(local)),
        remote_(std::move(remote)),
        options_(std::move(options)),
        lease_(std::move(lease)) {}

  // Releases the lock while it computes, so that a plan of millions of blocks blocks no other
  // thread.
  Status plan(AgentLock::Held& held);
  Status post(const PostOptions& options);  // takes the lock, shared or exclusively
  void cancel();                            // called by the user
  // Plans and posts these ops as one hop of a staged transfer, without a deadline. `ended` is
  // called once with the exclusive lock held, at the earliest inside this call.
  Status startHop(core::OpList list, core::Requirement required,
                  std::function<void(TransferImpl&)> ended);
  // The peer is not ready yet, or has yet to announce pins, and TransferOptions::reach lets the
  // next post wait for that.
  bool awaitsPeer() const;
  bool reaching() const { return reaching_; }  // a post waits for the peer
  void
  goOnReaching();  // plans and begins such a post, if it need not wait any more; takes the lock
  void forgetHop() {
    hop_ended_ = [](TransferImpl&) {};
  }  // `ended` will not be called
  bool running() const { return state() == TransferState::kRunning; }
  TransferState state() const { return state_.load(std::memory_order_acquire); }  // needs no lock

  // The agent calls the functions below.
  void moved(const core::Moved& moved) override;
  void failed(core::Failed failed) override;
  void staged(core::Staged staged) override;
  // Offers the ops that rails have not taken yet.
  void offer();
  // The last offer() has left ops that a rail may take later.
  bool wasRefused() const { return refused_ && !stopping_; }
  bool uses(std::uint32_t local_slot) const;
  void abort(Error why);  // stops posting, cancels the slices, and ends with `why`
  Clock::time_point due() const { return due_; }  // the current deadline, while the transfer runs
  void overdue();

  AgentImpl& agent() { return *agent_; }
  const PeerImpl& peer() const { return *peer_; }
  const HeldLease* lease() const { return lease_.get(); }
  TransferEnd end() const { return {state(), error_, corrupt_}; }
  Path path() const;
  Path carried() const;
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t ops() const { return total_ops_; }
  base::Watchers& watchers() { return watchers_; }  // of the end of the post

  // The links in the agent's lists of running transfers, and of those that wait for room.
  Hook<TransferImpl> running_hook, waiting_hook;

 private:
  bool mayPostAtOnce(const PostOptions& options) const {
    // A mark is sent after the copy.
    return direct_.load(std::memory_order_relaxed) && !options.with_note && options.note.empty() &&
           options.digests.empty();
  }
  // How much a thread has moved by itself, within post().
  enum class AtOnce : std::uint8_t { kNothing, kPart, kAll };
  // Claims a transfer for one thread: no other thread may change its plan or post it.
  class Claim {
   public:
    explicit Claim(std::atomic<bool>& claimed) : claimed_(claimed) {}
    ~Claim() { release(); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    // In a section of the lock. False: another thread has it.
    bool take() {
      if (!got_) got_ = !claimed_.exchange(true, std::memory_order_acquire);
      return got_;
    }
    void release() {
      if (std::exchange(got_, false)) claimed_.store(false, std::memory_order_release);
    }

   private:
    std::atomic<bool>& claimed_;
    bool got_ = false;
  };
  AtOnce postAtOnce(const PostOptions& options, Claim& claim);
  AtOnce moveAtOnce(Shared& shared, const PostOptions& options);
  bool mayMoveAtOnce(const PostOptions& options);
  void endAtOnce(AtOnce moved, Status ended);
  [[gnu::noinline]] Status goOn(const PostOptions& options, Claim& claim, AtOnce moved);
  Status postExclusively(AgentLock::Held& held, const PostOptions& options);
  bool mayPost(const PostOptions& options) const;
  [[gnu::noinline]] bool mayCarry(const PostOptions& options) const;
  Error refusal(const PostOptions& options) const;
  bool mayAccess() const { return !lease_ || lease_->isLive(); }
  bool stillPlanned();
  void remember(std::vector<Bundle> bundles, std::span<const core::PinSpan> spans,
                std::uint64_t bytes);
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
  bool isAnnounced() const;
  bool mayAwaitPeer(const PostOptions& options) const;
  Error notReached() const;
  void reach(const PostOptions& options);
  void endReach();
  void hurryReach();
  void strand();
  void stopPosting();
  void run(const PostOptions& options);
  void start(const PostOptions& options);
  void collect();
  void expect(Clock::time_point due);
  void resetLinks();
  void endIfOver();
  Status mayCheck(const PostOptions& options) const;
  void prepareCheck(std::span<const Digest> digests);
  void goOnChecking();
  void checkPart();
  void endCheck();
  void sayWhatMoved() const;
  void countErrorWithoutRail();
  void railLost(Bundle& bundle, std::uint32_t number, const Error& why);
  void stopTiming(TransferState state);
  Status tellPeer();
  void countEnd(TransferState state);
  void finish(TransferState state);

  const std::shared_ptr<AgentImpl> agent_;
  std::shared_ptr<PeerImpl> peer_;
  const OpKind kind_;
  const Selection local_, remote_;
  const TransferOptions options_;
  const std::shared_ptr<HeldLease> lease_;  // null: the transfer needs none

  // The plan.
  std::vector<Bundle> bundles_;
  Path carried_before_;  // work of earlier plans, and of the stages of all posts
  std::uint64_t bytes_ = 0, total_ops_ = 0;
  // The posting thread may copy by itself, and there is no callback to run. Read without a lock.
  std::atomic<bool> direct_{false};
  std::uint64_t planned_epoch_ = 0, local_version_ = 0, remote_version_ = 0;
  // Slots and their generations.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> local_used_, remote_used_;

  // The current post.
  // A thread posts. Between its shared sections and while it plans, other threads may hold the lock
  // exclusively.
  std::atomic<bool> claimed_{false};
  std::atomic<TransferState> state_{TransferState::kIdle};
  Timing::Timed timed_;
  std::uint64_t out_ = 0;         // ops that rails have accepted and not yet completed
  bool refused_ = false;          // a rail refused ops in the last offer
  bool reaching_ = false;         // waits for the peer, without a plan
  bool was_early_ = false;        // the peer was not ready when such a post began to wait
  Clock::time_point deadline_{};  // of such a post, which may end earlier for want of the peer
  bool stopping_ = false;         // no more slices are posted, because of error_
  // Aborted: if ops are still out after part of the grace, the peer's session ends.
  bool forced_ = false;
  std::optional<Error> error_;
  // The check of the blocks against digests, if there are any. While it runs, it counts as one op
  // in out_, because it reads the memory.
  std::optional<BlockCheck> check_;
  Indices corrupt_;
  std::optional<Error> rail_error_;  // of the last rail that was lost
  bool has_note_ = false;
  std::vector<std::byte> note_;
  std::optional<Mark> mark_;
  Clock::time_point due_ = Clock::time_point::max();
  Path stages_;  // the shares of the stages in this post, sorted by stage
  base::Watchers watchers_;
  std::function<void(TransferImpl&)> hop_ended_;  // set: this is a hop of another transfer
};

}  // namespace viaduct::agent
