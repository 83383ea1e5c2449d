// AgentImpl: its drain. docs/design/0063-drain.md
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "agent/agent_impl.h"
#include "agent/peers/peer_impl.h"
#include "base/log.h"

namespace viaduct::agent {
namespace {

using base::log;
using base::LogLevel;

// The interval at which a drain checks the remaining work. No event tells that a socket has taken
// its bytes.
constexpr Duration kLookEvery = std::chrono::milliseconds(2);

Error noDrain(const char* detail) {
  return {.code = Code::kInvalid,
          .operation = "undrain",
          .detail = detail,
          .remedy = "call undrain() while drain() runs in another thread"};
}

Error cutOff(const PeerImpl& peer) {
  return {.code = Code::kDraining,
          .operation = "transfer",
          .detail = "this agent drained, and its deadline passed during the transfer",
          .peer = peer.name(),
          .remedy = "give drain() more time"};
}

}  // namespace

// Gives up the name first, so that a successor has the name before peers look for a successor.
Result<std::uint64_t> AgentImpl::startDrain() {
  const std::lock_guard naming(naming_);
  {
    const auto held = hold();
    VIADUCT_CHECK(usable("drain"));
    if (drain_ != 0)
      return Error{.code = Code::kInvalid,
                   .operation = "drain",
                   .detail = "this agent drains already",
                   .remedy =
                       "wait for the first drain(); drainState() tells its rest, and "
                       "undrain() takes it back"};
    drain_ = ++last_drain_;
  }
  if (finder_) finder_->withdraw();
  return drain_;
}

Result<std::vector<DrainLeft>> AgentImpl::drain(Deadline until) {
  VIADUCT_TRY(const std::uint64_t number, startDrain());
  auto held = hold();
  const auto deadline = engine_->poller().fromSteady(until.at());
  const auto taken_back = [&] { return drain_ != number; };
  if (!taken_back()) {
    peers_.beginDrain(deadline);
    traffic_.endReaching(nullptr, peers_.drainError("post"));
    parcels_.refuseWaiting(peers_.drainError("fetch"));
  }
  const auto over = [&] {
    return taken_back() || closed() || !peers_.hasDrainLeft() || now() >= deadline;
  };
  while (!engine_->waitHeld(over, Clock::now() + kLookEvery)) {
  }
  if (closed()) return usable("drain").error();
  if (taken_back())
    return Error{.code = Code::kCancelled, .operation = "drain", .detail = "undrain() was called"};
  drain_ends_ = true;
  auto rest = peers_.drainLeft();
  if (!rest.empty()) endRest(rest);
  held.unlock();
  shutdown();
  return rest;
}

// The peers learn of revoked leases, and answer once no access is left. A peer that does not answer
// within the grace loses its session.
void AgentImpl::endRest(const std::vector<DrainLeft>& rest) {
  for (const DrainLeft& left : rest)
    log(LogLevel::kWarning,
        "the drain of agent {} ends what is left with peer {}: {} transfers, {} of the peer, {} "
        "lent and {} borrowed leases, {} streams, {} fetches{}",
        settings_.name, left.peer, left.transfers, left.their_transfers, left.lent, left.borrowed,
        left.streams, left.fetches, left.answered ? "" : "; it has not answered");
  const auto peers = peers_.all();
  traffic_.forEach([](Posting& posting) { posting.abort(cutOff(posting.peer())); });
  for (const auto& peer : peers) peer->leases().endAll();
  const auto limit = now() + settings_.grace;
  const auto ended = [&] {
    return now() >= limit || (traffic_.empty() && std::ranges::all_of(peers, [](const auto& peer) {
                                return peer->leases().lent() == 0;
                              }));
  };
  while (!engine_->waitHeld(ended, Clock::now() + kLookEvery)) {
  }
}

Status AgentImpl::undrain() {
  const std::lock_guard naming(naming_);
  const auto may_undrain = [this]() -> Status {
    VIADUCT_CHECK(usable("undrain"));
    if (drain_ == 0) return noDrain("no drain runs");
    if (drain_ends_) return noDrain("the drain's deadline has passed, and it ends the rest");
    return Ok{};
  };
  {
    const auto held = hold();
    VIADUCT_CHECK(may_undrain());
  }
  if (finder_) VIADUCT_CHECK(finder_->publish(settings_.deadline));
  const auto held = hold();
  if (Status may = may_undrain(); !may) {
    if (finder_) finder_->withdraw();
    return may;
  }
  drain_ = 0;
  peers_.endDrain();
  engine_->takeOverNow();
  return Ok{};
}

DrainState AgentImpl::drainState() {
  const auto held = hold();
  if (drain_ == 0 || closed()) return {};
  return {.draining = true,
          .remaining = std::max(peers_.drainUntil() - now(), Duration::zero()),
          .left = peers_.drainLeft()};
}

}  // namespace viaduct::agent
