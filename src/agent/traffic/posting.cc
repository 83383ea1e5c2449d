#include "agent/traffic/posting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/peers/peer_impl.h"
#include "agent/traffic/traffic.h"
#include "base/log.h"
#include "base/sizes.h"
#include "host/facts.h"

namespace viaduct::agent {

Posting::Posting(Traffic& traffic, std::shared_ptr<PeerImpl> peer, OpKind kind, Priority priority)
    : traffic_(traffic),
      basis_(traffic.basis().shared_from_this()),
      peer_(std::move(peer)),
      kind_(kind),
      priority_(priority) {}

void Posting::take(Bundles bundles) {
  bundles_ = std::move(bundles);
  total_ops_ = 0;
  for (const Bundle& bundle : bundles_) total_ops_ += bundle.ops().size();
}

void Posting::begin() {
  for (Bundle& bundle : bundles_) bundle.start();
  out_ = 0;
  stopping_ = forced_ = false;
  due_ = Clock::time_point::max();  // the deadline of the previous post may have passed
  error_.reset();
  rail_error_.reset();
  traffic_.enter(*this);
  state_.store(TransferState::kRunning, std::memory_order_release);
}

void Posting::end(TransferState state) {
  for (Bundle& bundle : bundles_) bundle.stop();
  traffic_.leave(*this);
  state_.store(state, std::memory_order_release);
  if (peer_->state() != PeerState::kReady) [[unlikely]]
    peer_->postEnded();
}

void Posting::addTo(std::span<std::array<RailQueue, kPriorities>> queues,
                    Clock::time_point now) const {
  for (const Bundle& bundle : bundles_)
    for (const Bundle::RailUse& use : bundle.rails()) {
      if (use.busy == 0 || bundle.done()) continue;
      RailQueue& queue = queues[use.counts->number][static_cast<std::size_t>(priority_)];
      queue.works += use.busy;
      queue.oldest = std::max<std::chrono::nanoseconds>(queue.oldest, now - std::min(begun_, now));
    }
}

void Posting::expect(Clock::time_point due) {
  due_ = due;
  traffic_.expectBy(due);
}

void Posting::offer() {
  // When a peer is being lost, the last completions of its closed links come through here.
  if (!running() || stopping_ || !peer_->isOpen()) return;
  for (Bundle& bundle : bundles_) {
    out_ += bundle.offer(kind_, priority_, *this);
    if (bundle.stranded()) return strand();
  }
}

void Posting::strand() {
  if (rail_error_) {
    error_ = rail_error_;
  } else {
    error_ = Error{.code = Code::kDevice,
                   .operation = opKindName(kind_),
                   .detail = "no rail to the peer works any more",
                   .peer = peer_->name()};
    countErrorWithoutRail(Code::kDevice);
  }
  stopPosting();
  endIfOver();
}

void Posting::moved(const core::Moved& moved) {
  out_ -= moved.ops;
  if (bundleOf(moved.slice).moved(moved)) offer();
  endIfOver();
}

void Posting::stopPosting() {
  stopping_ = true;
  for (const Bundle& bundle : bundles_) bundle.cancel(*this);
}

void Posting::failed(core::Failed failed) {
  out_ -= failed.ops;
  Bundle& bundle = bundleOf(failed.slice);
  const std::uint32_t number = failed.slice.number;
  // A slice that was cancelled because another one failed is no error of its rail.
  // abort() sets it before forced_.
  const Code code = forced_ ? error_->code : failed.why.code;
  if ((forced_ || !stopping_) && code != Code::kCancelled) bundle.countError(number, code);
  if (failed.rail_lost) railLost(bundle, number, failed.why);
  if (bundle.failed(number, failed.ops, failed.rail_lost)) {
    rail_error_ = std::move(failed.why);
    offer();
  } else {
    if (!error_) error_ = std::move(failed.why);
    if (!stopping_) stopPosting();
  }
  endIfOver();
}

// Warns when a rail is set aside for the first time. Further times in a row are logged as
// information.
void Posting::railLost(Bundle& bundle, std::uint32_t number, const Error& why) {
  const Bundle::RailUse* const use = bundle.setAsideIfItFailsAgain(number, basis_->now());
  if (use == nullptr) return;
  const Duration time = use->health->time();
  base::log(time == RailHealth::kFirst ? base::LogLevel::kWarning : base::LogLevel::kInfo,
            "rail {} of host {} to peer {} fails again and again; it is set aside for {} and then "
            "tried again; last failure: {}",
            use->name, host::hostName(), peer_->name(), base::formatDuration(time), why.text());
}

bool Posting::usesRemote(std::uint32_t remote_slot) const {
  return std::ranges::any_of(bundles_, [&](const Bundle& bundle) {
    return std::ranges::any_of(bundle.ops(),
                               [&](const core::Op& op) { return op.remote_pin == remote_slot; });
  });
}

void Posting::fail(Error why) {
  if (!running() || stopping_ || allDone()) return;
  countErrorWithoutRail(why.code);
  error_ = std::move(why);
  stopPosting();
  endIfOver();
}

void Posting::abort(Error why) {
  if (!running() || forced_) return;
  if (!stopping_) {
    const Code code = why.code;
    error_ = std::move(why);
    stopPosting();
    if (out_ == 0) {
      countErrorWithoutRail(code);
      return endIfOver();
    }
  }
  // Waits for 3/4 of the grace until the ops are back. Then the peer's session ends, which ends
  // them.
  forced_ = true;
  const auto now = basis_->now();
  expect(now + basis_->settings().grace * 3 / 4);
  basis_->engine().takeOverNow();
}

void Posting::overdue() {
  due_ = Clock::time_point::max();
  if (forced_) return resetLinks();
  std::uint64_t moved = 0;
  for (const Bundle& bundle : bundles_) moved += bundle.movedOps();
  abort({.code = Code::kTimeout,
         .operation = opKindName(kind_),
         .detail = fmt::format("{} of {} ops were in flight at the deadline", total_ops_ - moved,
                               total_ops_),
         .peer = peer_->name(),
         .cause = basis_->settings().faults.empty()
                      ? "the peer or the path is too slow for the deadline, or has stalled"
                      : "VIADUCT_FAULTS delays or stops ops of this agent",
         .remedy = "check Peer::state() and the path's load, or give a longer deadline"});
}

// The peer does not confirm the end of the ops, so its session ends, which closes the links and
// ends the ops.
void Posting::resetLinks() {
  peer_->lose({.code = Code::kPeerLost,
               .operation = "transfer",
               .detail = "the peer did not confirm the end of a transfer within the grace",
               .peer = peer_->name(),
               .cause = "the peer is frozen or unreachable"});
}

void Posting::endIfOver() {
  if (running() && out_ == 0 && (stopping_ || allDone())) over();
}

TransferState Posting::outcome() const {
  if (!error_) return TransferState::kDone;
  return error_->code == Code::kCancelled ? TransferState::kCancelled : TransferState::kFailed;
}

void Posting::countErrorWithoutRail(Code code) {
  if (code != Code::kCancelled) count(basis_->counts().errors_without_rail, code);
}

}  // namespace viaduct::agent
