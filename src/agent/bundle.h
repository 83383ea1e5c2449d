// A transfer's ops for one link, and the rails that carry them: slices are bound late, and those of
// a rail that fails go to the others. Threads: under the agent's lock.
#pragma once

#include <viaduct/path.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/counts.h"
#include "agent/rail_health.h"
#include "core/backend.h"
#include "core/op.h"
#include "core/plan.h"

namespace viaduct::agent {

// It and its parts begin at a cache line: two threads that post neighbours on the heap would wait
// for each other's writes (docs/measured/threads.md).
class alignas(64) Bundle {
 public:
  // What rails have moved.
  struct Tally {
    std::uint64_t ops = 0, bytes = 0, injected = 0, batches = 0;
    // Of a Moved, or another Tally.
    template <class Some>
    void add(const Some& some) {
      ops += some.ops;
      bytes += some.bytes;
      injected += some.injected;
      batches += some.batches;
    }
    void addTo(PathShare& share) const {
      share.ops += ops;
      share.bytes += bytes;
      share.injected += injected;
      share.batches += batches;
    }
  };
  // One of the link's rails.
  struct alignas(64) RailUse {
    core::Rail* rail = nullptr;
    RailCounts* counts = nullptr;  // of all transfers together
    RailHealth* health = nullptr;  // of all transfers to the link's peer
    std::string name = {};
    bool near = true;    // to the memory here: others get slices while none of these serves
    Tally carried = {};  // by posts that are over
    // Of this post:
    std::uint32_t filling = kNone;  // the slice of which it has not taken all
    std::uint32_t busy = 0;         // slices given and not yet back
    std::uint32_t failures = 0;
    bool usable = false;   // as last asked
    bool refuses = false;  // took less than it was offered

    // A post is over, in which it moved this.
    void carry(const Tally& moved) {
      carried.add(moved);
      counts->bytes += moved.bytes;
      counts->ops += moved.ops;
    }
  };
  struct Route {
    core::Link* link = nullptr;
    std::string_view backend = {};
    std::string way = {};  // of its own: the link that told it may go before
  };
  // The rails that a transfer has to itself now: the near ones that serve, or else all that do.
  static std::uint64_t serving(const core::Link& link, std::span<const RailUse> rails);
  // `first_tag`: of its first slice, within the transfer's.
  Bundle(Route route, core::Sliced plan, std::vector<RailUse> rails, std::uint32_t first_tag);

  // Begins a post: nothing is out.
  void start() {
    refused_ = stranded_ = false;
    left_ = slices_.size();
    if (several_) return startSeveral();
    rails_.front().failures = 0;
    slices_.front().begin(0);
  }
  // Gives slices to rails that have room; says how many ops were taken. Tags are `base` and the
  // slice's number.
  std::uint64_t offer(OpKind kind, core::Tag base) {
    return several_ ? offerSeveral(kind, base) : offerOnly(kind, base);
  }
  // As the last offer left it. A rail refused ops: offer again after it was polled.
  bool refused() const { return refused_; }
  // Ops wait for a rail, and none is left that could take them.
  bool stranded() const { return stranded_; }
  bool done() const { return left_ == 0; }
  // For one that isDirect(). A whole post by the calling thread itself, if it is small enough: then
  // it is done, and counted in `counts`. Otherwise nothing has changed.
  bool moveNow(OpKind kind, CellCounts& counts);
  bool isDirect() const { return direct_ != nullptr; }

  bool has(core::Tag number) const { return number < end_tag_; }  // asked in their order
  // The next bundle's first.
  std::uint32_t endTag() const { return end_tag_; }
  // Ops of that slice came back. True: there is something to offer, and room for it.
  bool moved(core::Tag number, const core::Moved& what) {
    SliceState& state = slices_[several_ ? number - first_tag_ : 0];
    state.back += static_cast<std::uint32_t>(what.ops);
    state.moved.add(what);
    if (!state.cameBack()) return false;
    if (state.moved.ops == state.slice.ops) --left_;
    return (several_ || state.lost) && makeRoom(state);
  }
  // False when another rail would fail as well.
  bool failed(core::Tag number, std::uint64_t ops, bool rail_lost);
  // The rail that has that slice is lost. The rail, where it is set aside for that from now on.
  const RailUse* setAsideIfItFailsAgain(core::Tag number, Clock::time_point now);
  // The rail that has that slice failed with it.
  void countError(core::Tag number, Code code) {
    count(rails_[slices_[number - first_tag_].use].counts->errors, code);
  }
  void cancel(core::Tag base) const;
  // The post is over.
  void stop() {
    if (several_) return stopSeveral();
    rails_.front().carry(slices_.front().moved);
  }

  std::span<const core::Op> ops() const { return ops_; }
  std::span<const RailUse> rails() const { return rails_; }
  // Whether as many rails serve the link as when this was planned.
  bool stillServed() const { return !several_ || served() == served_; }
  std::uint64_t movedOps() const;
  void addTo(Path& path) const;         // what this post has moved
  void addCarriedTo(Path& path) const;  // what all posts that are over have

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  // While the peer confirms one, the rail has the next.
  static constexpr std::uint32_t kInFlight = 2;
  // A rail that says it serves and fails all the same is left alone for the rest of the post.
  static constexpr std::uint32_t kMostFailures = 3;

  struct alignas(64) SliceState {
    core::Slice slice;
    std::uint32_t use = 0;
    std::uint32_t taken = 0, back = 0;  // ops
    Tally moved = {};
    bool lost = false;  // with its rail: begins again when all that was taken is back

    void begin(std::uint32_t with) {
      use = with;
      taken = back = 0;
      moved = {};
      lost = false;
    }
    bool cameBack() const { return back == taken && (taken == slice.ops || lost); }
  };
  // Slices wait until one that is out comes back.
  bool waits() const { return next_ < slices_.size() || !again_.empty(); }
  void startSeveral();
  void stopSeveral();
  std::uint64_t offerSeveral(OpKind kind, core::Tag base);
  std::uint64_t offerOnly(OpKind kind, core::Tag base);
  std::size_t give(SliceState& state, const RailUse& use, OpKind kind, core::Tag base) const;
  void askRails();
  bool askRails(bool aside_too);
  RailUse* freeRail();
  void takeNext(RailUse& use);
  void giveUp(RailUse& use);
  bool mayTryAnother(const RailUse& use) const;
  bool makeRoom(SliceState& state);
  std::uint64_t served() const { return serving(*route_.link, rails_); }
  PathShare shareOf(const RailUse& use) const;
  std::uint32_t indexOf(const SliceState& state) const {
    return static_cast<std::uint32_t>(&state - slices_.data());
  }

  Route route_;
  std::vector<core::Op> ops_;
  std::vector<SliceState> slices_;
  std::vector<RailUse> rails_;
  std::uint32_t first_tag_, end_tag_;
  // An only rail gets everything at once, and there is nothing to choose.
  bool several_;
  core::DirectMover* direct_ = nullptr;  // of an only rail
  bool refused_ = false, stranded_ = false;
  bool far_ = false;          // no near rail serves, as last asked
  std::uint64_t served_ = 0;  // rails, when it was planned
  std::size_t next_ = 0;      // of slices_: not yet given to any rail
  std::vector<std::uint32_t> again_;
  std::size_t left_ = 0;
};

}  // namespace viaduct::agent
