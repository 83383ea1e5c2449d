// A transfer's ops for one link, and the rails that carry them. A slice gets its rail late: when a
// rail has few slices of the bundle. Other rails repeat the slices of a rail that fails. Threads:
// with the agent's lock held, except moveNow(), stillServed() and addTo(), which a thread in a
// section (move/sections.h) calls for a transfer that it has claimed.
#pragma once

#include <viaduct/path.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/basis/counts.h"
#include "agent/peers/rail_health.h"
#include "base/cache_lines.h"
#include "core/backend.h"
#include "core/landed_blocks.h"
#include "core/op.h"
#include "core/plan.h"
#include "move/rail_runner.h"

namespace viaduct::agent {

// A bundle and its parts begin at cache lines. Otherwise threads that post bundles which are
// neighbours on the heap would wait for each other's writes (docs/measured/threads.md).
class alignas(64) Bundle {
 public:
  // The work that rails have completed.
  struct Tally {
    std::uint64_t ops = 0, bytes = 0, injected = 0, batches = 0, by_kernel = 0;
    // `some` is a Moved or another Tally.
    template <class Some>
    void add(const Some& some) {
      ops += some.ops;
      bytes += some.bytes;
      injected += some.injected;
      batches += some.batches;
      by_kernel += some.by_kernel;
    }
    void addTo(PathShare& share) const {
      share.ops += ops;
      share.bytes += bytes;
      share.injected += injected;
      share.batches += batches;
      share.by_kernel += by_kernel;
    }
  };
  // A rail of the link, and the bundle's use of it.
  struct alignas(64) RailUse {
    core::Rail* rail = nullptr;
    move::RailRunner* runner = nullptr;
    RailCounts* counts = nullptr;  // shared by all transfers
    RailHealth* health = nullptr;  // shared by all transfers to the link's peer
    std::string name = {};
    // Near to the local memory. Other rails get slices only while no near rail is usable.
    bool near = true;
    Tally carried = {};  // the work of ended posts
    // The fields below are about the current post.
    std::uint32_t busy = 0;  // slices that were given to the rail and are not yet back
    std::uint32_t failures = 0;
    bool usable = false;  // when askRails() last asked

    // Adds the completed work of a post that has ended.
    void carry(const Tally& moved) {
      carried.add(moved);
      counts->bytes += moved.bytes;
      counts->ops += moved.ops;
    }
  };
  using RailUses = std::vector<RailUse, base::CacheLines<RailUse>>;
  struct Route {
    core::Link* link = nullptr;
    std::string_view backend = {};
    std::string way = {};     // a copy, because the link may be destroyed before this
    bool staged = false;      // other postings do the work, and staged() tells their shares
    std::uint64_t whole = 0;  // as in Work
    // The bytes of the transfer that the ops copy, in the order of the ops. Empty: all bytes.
    std::vector<core::Stretch> stretches = {};
    core::Requirement required = {};
  };
  // The number of rails that may carry a transfer now. These are the near rails that serve the
  // link, or else all rails that serve it. Rails that were set aside count only if there are no
  // others.
  static std::uint64_t serving(const core::Link& link, std::span<const RailUse> rails);
  // `first` is the number of its first slice, counted over all bundles of the transfer.
  Bundle(Route route, core::Sliced plan, RailUses rails, std::uint32_t first);

  // Begins a post, while no rail has an op of it.
  void start() {
    stranded_ = false;
    left_ = slices_.size();
    stages_.shares.clear();
    if (several_) return startSeveral();
    rails_.front().failures = 0;
    slices_.front().begin(0);
  }
  // Gives slices to rails, and returns the number of ops in them. The sink gets their completions.
  std::uint64_t offer(OpKind kind, Priority priority, core::Sink& sink) {
    return several_ ? offerSeveral(kind, priority, sink) : offerOnly(kind, priority, sink);
  }
  // Ops remain, and no rail is left that could take them.
  bool stranded() const { return stranded_; }
  bool done() const { return left_ == 0; }
  // Call it only if isDirect(). The calling thread does a whole post by itself. kMoved: the post is
  // done, and counted in `counts`. Otherwise the bundle is unchanged: call it again, or let offer()
  // post all of it.
  core::DirectMover::Outcome moveNow(OpKind kind, core::DirectMover::Progress& so_far,
                                     const std::atomic<bool>& pause, CellCounts& counts);
  bool isDirect() const { return direct_ != nullptr; }

  // Whether slice `number` is of this bundle, if it is of no bundle before this one.
  bool has(std::uint32_t number) const { return number < end_; }
  // The number of the next bundle's first slice.
  std::uint32_t end() const { return end_; }
  // Ops have completed. True: there are ops to offer, and a rail with room.
  bool moved(const core::Moved& what) {
    SliceState& state = slices_[several_ ? what.slice.number - first_ : 0];
    state.back += static_cast<std::uint32_t>(what.ops);
    state.moved.add(what);
    if (!state.cameBack()) return false;
    if (state.moved.ops == state.slice.ops) --left_;
    return (several_ || state.lost) && makeRoom(state);
  }
  // Ops of slice `number` have failed. False: it is useless to try another rail.
  bool failed(std::uint32_t number, std::uint64_t ops, bool rail_lost);
  // The rail of slice `number` is lost. Returns the rail if it is set aside for that from now on.
  const RailUse* setAsideIfItFailsAgain(std::uint32_t number, Clock::time_point now);
  // Counts an error of the rail of slice `number`.
  void countError(std::uint32_t number, Code code) {
    count(rails_[slices_[number - first_].use].counts->errors, code);
  }
  // A part of the work has passed a stage of a staged path.
  void staged(PathShare share);
  void cancel(const core::Sink& sink) const;
  // Ends the post: adds its completed ops and bytes to the counts of its rails.
  void stop() {
    for (const PathShare& share : stages_.shares) stages_carried_.add(share);
    if (several_) return stopSeveral();
    rails_.front().carry(slices_.front().moved);
  }

  std::span<const core::Op> ops() const { return ops_; }
  std::span<const RailUse> rails() const { return rails_; }
  // True while the same number of rails serves the link as when the transfer was planned.
  bool stillServed() const { return !several_ || served() == served_; }
  std::uint64_t movedOps() const;
  // Adds the bytes of the transfer that rails have acknowledged in this post to `out`.
  void addLanded(std::vector<core::Stretch>& out) const;
  void addTo(Path& path) const;         // the work of this post
  void addCarriedTo(Path& path) const;  // the work of all ended posts

 private:
  // A rail with two slices works on one of them while the peer confirms the other.
  static constexpr std::uint32_t kInFlight = 2;
  // A rail may claim to serve the link and still fail. After this many failures it gets nothing
  // more in this post.
  static constexpr std::uint32_t kMostFailures = 3;

  struct alignas(64) SliceState {
    core::Slice slice;
    std::uint32_t use = 0;
    bool given = false;      // the slice was given to rail `use`
    std::uint32_t back = 0;  // ops
    Tally moved = {};
    // The rail is lost. The slice begins again when all ops are back.
    bool lost = false;

    void begin(std::uint32_t with) {
      use = with;
      given = false;
      back = 0;
      moved = {};
      lost = false;
    }
    bool cameBack() const { return back == slice.ops; }
  };
  // True while slices wait for a rail with room.
  bool waits() const { return next_ < slices_.size() || !again_.empty(); }
  void startSeveral();
  void stopSeveral();
  std::uint64_t offerSeveral(OpKind kind, Priority priority, core::Sink& sink);
  std::uint64_t offerOnly(OpKind kind, Priority priority, core::Sink& sink);
  std::uint64_t give(SliceState& state, const RailUse& use, OpKind kind, Priority priority,
                     core::Sink& sink) const;
  void askRails();
  bool askRails(bool aside_too);
  RailUse* freeRail();
  SliceState& takeNext(RailUse& use);
  bool mayTryAnother(const RailUse& use) const;
  bool makeRoom(SliceState& state);
  std::uint64_t served() const { return serving(*route_.link, rails_); }
  PathShare shareOf(const RailUse& use) const;
  std::uint32_t indexOf(const SliceState& state) const {
    return static_cast<std::uint32_t>(&state - slices_.data());
  }

  Route route_;
  std::vector<core::Op> ops_;
  std::vector<SliceState, base::CacheLines<SliceState>> slices_;
  RailUses rails_;
  std::uint32_t first_, end_;
  // False with one rail: it gets all ops at once, and there is no choice.
  bool several_;
  core::DirectMover* direct_ = nullptr;  // only with one rail
  bool stranded_ = false;
  bool far_ = false;          // no near rail was usable when askRails() last asked
  std::uint64_t served_ = 0;  // the result of served() at planning
  std::size_t next_ = 0;      // the first of slices_ that no rail was ever given
  std::vector<std::uint32_t> again_;
  std::size_t left_ = 0;
  Path stages_ = {};  // of this post, sorted by stage
  Path stages_carried_ = {};
};
using Bundles = std::vector<Bundle, base::CacheLines<Bundle>>;

}  // namespace viaduct::agent
