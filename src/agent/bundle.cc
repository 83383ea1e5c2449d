#include "agent/bundle.h"

#include <algorithm>
#include <utility>

namespace viaduct::agent {

Bundle::Bundle(Way way, core::Sliced plan, std::vector<Lane> lanes, std::uint32_t first_tag)
    : way_(std::move(way)),
      ops_(std::move(plan.ops)),
      lanes_(std::move(lanes)),
      first_tag_(first_tag),
      end_tag_(first_tag + static_cast<std::uint32_t>(plan.slices.size())),
      several_(lanes_.size() != 1) {
  slices_.reserve(plan.slices.size());
  for (const core::Slice& slice : plan.slices) slices_.push_back({.slice = slice});
  again_.reserve(slices_.size());  // so that a failure allocates nothing either
  served_ = served();
}

std::uint64_t Bundle::serving(const core::Link& link, std::span<const Lane> lanes) {
  std::uint64_t near = 0, all = 0, aside = 0;
  for (const Lane& lane : lanes) {
    if (!link.servedBy(*lane.rail)) continue;
    if (lane.health->isSetAside()) {
      ++aside;
      continue;
    }
    ++all;
    near += lane.near ? 1 : 0;
  }
  if (all == 0) return aside;
  return near != 0 ? near : all;
}

void Bundle::startSeveral() {
  for (Run& run : slices_) run.begin(0);
  for (Lane& lane : lanes_) {
    lane.filling = kNone;
    lane.busy = lane.failures = 0;
  }
  again_.clear();
  next_ = 0;
}

// What a lane still has by halves is no longer its load.
void Bundle::stopSeveral() {
  for (const Run& run : slices_) {
    lanes_[run.lane].carry(run.moved);
  }
  for (Lane& lane : lanes_)
    if (const std::uint32_t index = std::exchange(lane.filling, kNone); index != kNone)
      lane.counts->load -= slices_[index].slice.bytes;
}

// A rail that was set aside is better than none.
void Bundle::askRails() {
  if (!askRails(false)) askRails(true);
  for (Lane& lane : lanes_)
    if (!lane.usable && lane.filling != kNone) giveUp(lane);
}

// Whether any is usable.
bool Bundle::askRails(bool aside_too) {
  far_ = true;
  bool any = false;
  for (Lane& lane : lanes_) {
    lane.refuses = false;
    lane.usable = lane.failures < kMostFailures && way_.link->servedBy(*lane.rail) &&
                  (aside_too || !lane.health->isSetAside());
    far_ = far_ && !(lane.usable && lane.near);
    any = any || lane.usable;
  }
  return any;
}

// The rest of what it has by halves is not for this rail.
void Bundle::giveUp(Lane& lane) {
  Run& run = slices_[std::exchange(lane.filling, kNone)];
  run.lost = true;
  if (run.cameBack()) makeRoom(run);
}

// The one with the least to do among those that have room, of the near ones while any serves. A
// slice that it has by halves is finished wherever it is.
Bundle::Lane* Bundle::freeLane() {
  Lane* best = nullptr;
  for (Lane& lane : lanes_) {
    if (!lane.usable || lane.refuses) continue;
    if (lane.filling != kNone) return &lane;
    if (lane.busy >= kInFlight || !waits() || !(lane.near || far_)) continue;
    if (best == nullptr ||
        std::pair(lane.busy, lane.counts->load) < std::pair(best->busy, best->counts->load))
      best = &lane;
  }
  return best;
}

void Bundle::takeNext(Lane& lane) {
  const std::size_t index = again_.empty() ? next_++ : again_.back();
  if (!again_.empty()) again_.pop_back();
  Run& run = slices_[index];
  run.begin(static_cast<std::uint32_t>(&lane - lanes_.data()));
  lane.filling = static_cast<std::uint32_t>(index);
  ++lane.busy;
  lane.counts->load += run.slice.bytes;
}

inline std::size_t Bundle::give(Run& run, const Lane& lane, OpKind kind, core::Tag base) const {
  const auto ops = std::span(ops_).subspan(run.slice.first, run.slice.ops);
  const std::size_t took = lane.rail->post({.kind = kind,
                                            .tag = base | (first_tag_ + indexOf(run)),
                                            .link = way_.link,
                                            .ops = ops.subspan(run.taken)});
  run.taken += static_cast<std::uint32_t>(took);
  return took;
}

std::uint64_t Bundle::offerSeveral(OpKind kind, core::Tag base) {
  std::uint64_t taken = 0;
  askRails();
  refused_ = false;
  while (Lane* const lane = freeLane()) {
    if (lane->filling == kNone) takeNext(*lane);
    Run& run = slices_[lane->filling];
    taken += give(run, *lane, kind, base);
    if (run.taken == run.slice.ops)
      lane->filling = kNone;
    else
      lane->refuses = refused_ = true;
  }
  stranded_ = waits() && std::none_of(lanes_.begin(), lanes_.end(),
                                      [](const Lane& l) { return l.usable || l.busy > 0; });
  return taken;
}

// It fails by itself where it does not serve, and says why.
std::uint64_t Bundle::offerOnly(OpKind kind, core::Tag base) {
  Run& run = slices_.front();
  if (run.taken == run.slice.ops || run.lost) return 0;
  Lane& lane = lanes_.front();
  lane.busy = 1;
  const std::size_t took = give(run, lane, kind, base);
  refused_ = run.taken != run.slice.ops;
  return took;
}

// All that was taken of it is back, its rail's room with it. True: there is something to offer.
bool Bundle::makeRoom(Run& run) {
  if (!several_) {
    run.begin(0);
    return true;
  }
  Lane& lane = lanes_[run.lane];
  --lane.busy;
  lane.counts->load -= run.slice.bytes;
  if (run.lost) again_.push_back(indexOf(run));
  return waits();
}

// On another rail; an only one may have lost one connection of several.
bool Bundle::worthAnother(const Lane& lane) const {
  return several_ || (lane.failures + 1 < kMostFailures && way_.link->servedBy(*lane.rail));
}

bool Bundle::failed(core::Tag number, std::uint64_t ops, bool rail_lost) {
  Run& run = slices_[number - first_tag_];
  Lane& lane = lanes_[run.lane];
  run.back += static_cast<std::uint32_t>(ops);
  if (rail_lost && !run.lost && worthAnother(lane)) {
    ++lane.failures;
    run.lost = true;
    if (lane.filling == indexOf(run)) lane.filling = kNone;
  }
  const bool lost = run.lost;
  if (run.cameBack() && (several_ || lost)) makeRoom(run);
  return lost;
}

const Bundle::Lane* Bundle::setAsideIfItFailsAgain(core::Tag number, Clock::time_point now) {
  const Lane& lane = lanes_[slices_[number - first_tag_].lane];
  if (!several_ || !lane.health->failed(now)) return nullptr;
  ++lane.counts->times_set_aside;
  return &lane;
}

void Bundle::cancel(core::Tag base) const {
  for (const Run& run : slices_)
    if (run.back != run.taken) lanes_[run.lane].rail->cancel(base | (first_tag_ + indexOf(run)));
}

std::uint64_t Bundle::movedOps() const {
  std::uint64_t ops = 0;
  for (const Run& run : slices_) ops += run.moved.ops;
  return ops;
}

PathShare Bundle::shareOf(const Lane& lane) const {
  return {.backend = std::string(way_.backend), .way = way_.way, .rail = lane.name};
}

void Bundle::addCarriedTo(Path& path) const {
  for (const Lane& lane : lanes_) {
    if (lane.carried.ops == 0) continue;
    PathShare share = shareOf(lane);
    lane.carried.addTo(share);
    path.add(std::move(share));
  }
}

void Bundle::addTo(Path& path) const {
  std::vector<PathShare> shares;
  shares.reserve(lanes_.size());
  for (const Lane& lane : lanes_) shares.push_back(shareOf(lane));
  for (const Run& run : slices_) {
    run.moved.addTo(shares[run.lane]);
  }
  for (PathShare& share : shares)
    if (share.ops != 0) path.shares.push_back(std::move(share));
}

}  // namespace viaduct::agent
