// One transfer: its plan, and the current post. Threads: with the agent's lock held, unless a
// comment says otherwise. In a section (move/sections.h), the thread that has set `claimed_` owns
// the transfer.
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

#include "agent/basis/block_digester.h"
#include "agent/basis/timing.h"
#include "agent/peers/lease_impl.h"
#include "agent/progress/agent_lock.h"
#include "agent/traffic/posting.h"
#include "agent/traffic/routes.h"
#include "base/attempt.h"
#include "core/op.h"
#include "core/plan.h"
#include "move/sections.h"

namespace viaduct::agent {

class PeerImpl;

// A TransferImpl begins at a cache line, as a Bundle does.
class alignas(64) TransferImpl final : public Posting,
                                       public std::enable_shared_from_this<TransferImpl> {
 public:
  TransferImpl(Traffic& traffic, std::shared_ptr<PeerImpl> peer, OpKind kind, Selection local,
               Selection remote, TransferOptions options,
               std::shared_ptr<HeldLease> lease = nullptr)
      : Posting(traffic, std::move(peer), kind, options.priority),
        local_(std::move(local)),
        remote_(std::move(remote)),
        options_(std::move(options)),
        lease_(std::move(lease)) {}

  // Releases the lock while it computes a long plan, so that millions of blocks block no other
  // thread.
  Status plan(AgentLock::Held& held);
  Status post(const PostOptions& options);  // takes the lock, or enters a section
  void cancel();                            // called by the user
  // The peer is not ready yet, or has yet to announce pins, and TransferOptions::reach lets the
  // next post wait for that.
  bool awaitsPeer() const;
  // Plans and begins a post that has waited for its peer, if it need not wait any more. Takes the
  // lock.
  void goOnReaching();

  // The agent calls the functions below.
  bool uses(std::uint32_t local_slot) const override;
  bool usesRemote(std::uint32_t remote_slot) const override;
  bool isUnder(const HeldLease& lease) const override { return lease_.get() == &lease; }
  void overdue() override;
  void peerLost(const Error& why) override {
    if (!reaching_) abort(why);
  }

  Basis& basis() { return *basis_; }
  TransferEnd result() const { return {state(), error_, corrupt_, landed_}; }
  Path path() const;
  Path carried() const;
  std::uint64_t bytes() const override { return bytes_; }
  std::uint64_t ops() const { return total_ops_; }
  base::Watchers& watchers() { return watchers_; }  // of the end of the post

 private:
  // A mark is sent after the copy, but refused before it.
  bool mayPostAtOnce(const PostOptions& options) const {
    return direct_.load(std::memory_order_relaxed) && !options.with_note && options.note.empty() &&
           options.digests.empty() && (!options.mark || mayMark(*options.mark));
  }
  [[gnu::noinline]] bool mayMark(const Mark& mark) const;
  Result<core::OpList> coalesce(AgentLock::Held& held);
  // How much a thread has moved by itself, within post().
  enum class AtOnce : std::uint8_t { kNothing, kPart, kAll };
  // Claims a transfer for one thread: no other thread may change its plan or post it.
  class Claim {
   public:
    explicit Claim(std::atomic<bool>& claimed) : claimed_(claimed) {}
    ~Claim() { release(); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    // False: another thread has it.
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
  // A post whose thread has moved some bytes by itself, and whose end other threads cannot see yet.
  // While this object lives, the peer counts the post as running.
  class Halfway {
   public:
    Halfway() = default;
    ~Halfway() {
      if (peer_) [[unlikely]]
        end();
    }
    Halfway(const Halfway&) = delete;
    Halfway& operator=(const Halfway&) = delete;
    void begin(const std::shared_ptr<PeerImpl>& peer);  // in a section

   private:
    void end();  // takes the lock
    std::shared_ptr<PeerImpl> peer_;
  };
  AtOnce postAtOnce(const PostOptions& options, Claim& claim, Halfway& halfway);
  AtOnce moveAtOnce(move::Section& section, Halfway& halfway);
  // Asked in a section, without the lock. The state that it reads may change meanwhile, but links
  // and pins that were there stay until the section has ended. A post with an error needs the lock
  // to clear the error.
  bool mayMoveAtOnce() const {
    return direct_.load(std::memory_order_relaxed) && mayAccess() && !error_ && isPlannedForNow();
  }
  void endAtOnce(AtOnce moved, Status ended);
  [[gnu::noinline]] Status goOn(const PostOptions& options, Claim& claim, AtOnce moved);
  Status postByRails(AgentLock::Held& held, const PostOptions& options, AtOnce moved);
  bool mayPost(const PostOptions& options, AtOnce moved) const;
  bool mayReach(const std::optional<Mark>& mark, AtOnce moved) const;
  [[gnu::noinline]] bool mayCarry(const PostOptions& options) const;
  Error refusal(const PostOptions& options) const;
  bool mayAccess() const { return !lease_ || lease_->isLive(); }
  bool stillPlanned();
  bool isPlannedForNow() const;
  void remember(Bundles bundles, std::uint64_t bytes);
  bool isAnnounced() const;
  bool mayAwaitPeer(const PostOptions& options) const;
  Error notReached() const;
  void reach(const PostOptions& options);
  void endReach();
  void hurryReach();
  void run(const PostOptions& options);
  void start(const PostOptions& options);
  void over() override;
  Status mayCheck(const PostOptions& options) const;
  void prepareCheck(std::span<const Digest> digests);
  void goOnChecking();
  void checkPart();
  void endCheck(const BlockCheck& check);
  void sayWhatMoved() const;
  void stopTiming(TransferState state);
  Status tellPeer();
  void countEnd(TransferState state);
  void finish(TransferState state);

  const Selection local_, remote_;
  const TransferOptions options_;
  const std::shared_ptr<HeldLease> lease_;  // null: the transfer needs none

  // The plan.
  Path carried_before_;  // work of earlier plans
  std::uint64_t bytes_ = 0;
  // The posting thread may copy by itself, and there is no callback to run. Read without a lock.
  std::atomic<bool> direct_{false};
  std::uint64_t planned_epoch_ = 0, local_version_ = 0, remote_version_ = 0;
  // Slots and their generations.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> local_used_, remote_used_;

  // The current post.
  // A thread posts. Between its sections and while it plans, other threads may have the lock.
  std::atomic<bool> claimed_{false};
  Timing::Timed timed_;
  bool reaching_ = false;         // waits for the peer, without a plan
  bool was_early_ = false;        // the peer was not ready when the post began to wait
  Clock::time_point deadline_{};  // of a waiting post, which ends earlier if `reach` passes
  // The check of the blocks against digests, if there are any. While it runs, it counts as one op
  // in out_, because it reads the memory.
  std::optional<BlockCheck> check_;
  Indices corrupt_, landed_;
  bool has_note_ = false;
  std::vector<std::byte> note_;
  std::optional<Mark> mark_;
  base::Watchers watchers_;
};

}  // namespace viaduct::agent
