#include "agent/traffic/bundle.h"

#include <algorithm>
#include <utility>

namespace viaduct::agent {

Bundle::Bundle(Route route, core::Sliced plan, RailUses rails, std::uint32_t first)
    : route_(std::move(route)),
      ops_(std::move(plan.ops)),
      rails_(std::move(rails)),
      first_(first),
      end_(first + static_cast<std::uint32_t>(plan.slices.size())),
      several_(rails_.size() != 1) {
  slices_.reserve(plan.slices.size());
  for (const core::Slice& slice : plan.slices) slices_.push_back({.slice = slice});
  again_.reserve(slices_.size());  // so that a failed rail needs no allocation
  served_ = served();
  if (several_) return;
  core::DirectMover* const direct = rails_.front().rail->direct();
  if (direct != nullptr && direct->fits(ops_)) direct_ = direct;
}

std::uint64_t Bundle::serving(const core::Link& link, std::span<const RailUse> rails) {
  std::uint64_t near = 0, all = 0, aside = 0;
  for (const RailUse& use : rails) {
    if (!link.servedBy(*use.rail)) continue;
    if (use.health->isSetAside()) {
      ++aside;
      continue;
    }
    ++all;
    near += use.near ? 1 : 0;
  }
  if (all == 0) return aside;
  return near != 0 ? near : all;
}

void Bundle::startSeveral() {
  for (SliceState& state : slices_) state.begin(0);
  for (RailUse& use : rails_) use.busy = use.failures = 0;
  again_.clear();
  next_ = 0;
}

void Bundle::stopSeveral() {
  for (const SliceState& state : slices_) rails_[state.use].carry(state.moved);
}

// Uses rails that were set aside only if no other rail is usable.
void Bundle::askRails() {
  if (!askRails(false)) askRails(true);
}

// Returns whether any rail is usable.
bool Bundle::askRails(bool aside_too) {
  far_ = true;
  bool any = false;
  for (RailUse& use : rails_) {
    use.usable = use.failures < kMostFailures && route_.link->servedBy(*use.rail) &&
                 (aside_too || !use.health->isSetAside());
    far_ = far_ && !(use.usable && use.near);
    any = any || use.usable;
  }
  return any;
}

// Returns the rail with the least load among those with few slices of the bundle. Rails that are
// not near count only if no near rail is usable.
Bundle::RailUse* Bundle::freeRail() {
  RailUse* best = nullptr;
  if (!waits()) return best;
  for (RailUse& use : rails_) {
    if (!use.usable || use.busy >= kInFlight || !(use.near || far_)) continue;
    if (best == nullptr ||
        std::pair(use.busy, use.counts->load) < std::pair(best->busy, best->counts->load))
      best = &use;
  }
  return best;
}

Bundle::SliceState& Bundle::takeNext(RailUse& use) {
  const std::size_t index = again_.empty() ? next_++ : again_.back();
  if (!again_.empty()) again_.pop_back();
  SliceState& state = slices_[index];
  state.begin(static_cast<std::uint32_t>(&use - rails_.data()));
  ++use.busy;
  use.counts->load += state.slice.bytes;
  return state;
}

inline std::uint64_t Bundle::give(SliceState& state, const RailUse& use, OpKind kind,
                                  Priority priority, core::Sink& sink) const {
  state.given = true;
  use.runner->post({.kind = kind,
                    .slice = {&sink, first_ + indexOf(state)},
                    .link = route_.link,
                    .ops = std::span(ops_).subspan(state.slice.first, state.slice.ops),
                    .priority = priority,
                    .whole = route_.whole,
                    .required = &route_.required});
  return state.slice.ops;
}

std::uint64_t Bundle::offerSeveral(OpKind kind, Priority priority, core::Sink& sink) {
  std::uint64_t given = 0;
  askRails();
  while (RailUse* const use = freeRail()) given += give(takeNext(*use), *use, kind, priority, sink);
  stranded_ = waits() && std::none_of(rails_.begin(), rails_.end(),
                                      [](const RailUse& l) { return l.usable || l.busy > 0; });
  return given;
}

core::DirectMover::Outcome Bundle::moveNow(OpKind kind, core::DirectMover::Progress& so_far,
                                           const std::atomic<bool>& pause, CellCounts& counts) {
  const core::Work work{.kind = kind, .link = route_.link, .ops = ops_};
  const auto outcome = direct_->moveNow(work, so_far, pause);
  if (outcome != core::DirectMover::Outcome::kMoved) return outcome;
  SliceState& state = slices_.front();
  state.begin(0);
  state.given = true;
  state.back = state.slice.ops;
  state.moved = {.ops = ops_.size(), .bytes = so_far.bytes};
  left_ = 0;
  RailUse& use = rails_.front();
  use.carried.add(state.moved);
  CellCounts::Carried& carried = counts.rails[use.counts->number];
  carried.bytes += so_far.bytes;
  carried.ops += ops_.size();
  return outcome;
}

// Does not ask servedBy(): a rail that does not serve the link fails the ops with a reason.
std::uint64_t Bundle::offerOnly(OpKind kind, Priority priority, core::Sink& sink) {
  SliceState& state = slices_.front();
  if (state.given) return 0;
  RailUse& use = rails_.front();
  use.busy = 1;
  return give(state, use, kind, priority, sink);
}

// All ops of the slice are back, so its rail has room. True: there are ops to offer.
bool Bundle::makeRoom(SliceState& state) {
  if (!several_) {
    state.begin(0);
    return true;
  }
  RailUse& use = rails_[state.use];
  --use.busy;
  use.counts->load -= state.slice.bytes;
  if (state.lost) again_.push_back(indexOf(state));
  return waits();
}

// If the bundle has several rails, another one may work. A single rail may have lost one of several
// connections.
bool Bundle::mayTryAnother(const RailUse& use) const {
  return several_ || (use.failures + 1 < kMostFailures && route_.link->servedBy(*use.rail));
}

bool Bundle::failed(std::uint32_t number, std::uint64_t ops, bool rail_lost) {
  SliceState& state = slices_[number - first_];
  RailUse& use = rails_[state.use];
  state.back += static_cast<std::uint32_t>(ops);
  if (rail_lost && !state.lost && mayTryAnother(use)) {
    ++use.failures;
    state.lost = true;
  }
  const bool lost = state.lost;
  if (state.cameBack() && (several_ || lost)) makeRoom(state);
  return lost;
}

const Bundle::RailUse* Bundle::setAsideIfItFailsAgain(std::uint32_t number, Clock::time_point now) {
  const RailUse& use = rails_[slices_[number - first_].use];
  if (!several_ || !use.health->failed(now)) return nullptr;
  ++use.counts->times_set_aside;
  return &use;
}

void Bundle::cancel(const core::Sink& sink) const {
  for (const RailUse& use : rails_)
    if (use.busy != 0) use.runner->cancel(sink);
}

std::uint64_t Bundle::movedOps() const {
  std::uint64_t ops = 0;
  for (const SliceState& state : slices_) ops += state.moved.ops;
  return ops;
}

// Only whole slices are known: completions count the ops of a slice, and do not name them.
void Bundle::addLanded(std::vector<core::Stretch>& out) const {
  std::uint64_t all = 0;
  for (const SliceState& state : slices_) all += state.slice.bytes;
  const std::vector<core::Stretch> only{{.from = 0, .bytes = all}};
  auto in = route_.stretches.empty() ? only.begin() : route_.stretches.begin();
  std::uint64_t used = 0;  // the used bytes of stretch `in`
  for (const SliceState& state : slices_) {
    for (std::uint64_t left = state.slice.bytes; left != 0;) {
      const std::uint64_t part = std::min(left, in->bytes - used);
      if (state.moved.ops == state.slice.ops) out.push_back({in->from + used, part});
      left -= part;
      used += part;
      if (used == in->bytes) {
        ++in;
        used = 0;
      }
    }
  }
}

PathShare Bundle::shareOf(const RailUse& use) const {
  return {.backend = std::string(route_.backend), .way = route_.way, .rail = use.name};
}

void Bundle::staged(PathShare share) {
  const std::size_t known = stages_.shares.size();
  stages_.add(std::move(share));
  if (stages_.shares.size() != known)
    std::ranges::stable_sort(stages_.shares, {}, &PathShare::stage);
}

void Bundle::addCarriedTo(Path& path) const {
  for (const PathShare& share : stages_carried_.shares) path.add(share);
  if (route_.staged) return;
  for (const RailUse& use : rails_) {
    if (use.carried.ops == 0) continue;
    PathShare share = shareOf(use);
    use.carried.addTo(share);
    path.add(std::move(share));
  }
}

void Bundle::addTo(Path& path) const {
  for (const PathShare& share : stages_.shares) path.add(share);
  if (route_.staged) return;
  std::vector<PathShare> shares;
  shares.reserve(rails_.size());
  for (const RailUse& use : rails_) shares.push_back(shareOf(use));
  for (const SliceState& state : slices_) {
    state.moved.addTo(shares[state.use]);
  }
  for (PathShare& share : shares)
    if (share.ops != 0) path.shares.push_back(std::move(share));
}

}  // namespace viaduct::agent
