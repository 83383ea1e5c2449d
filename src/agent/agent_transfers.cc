// AgentImpl: its running transfers.
#include <algorithm>
#include <utility>
#include <variant>

#include "agent/agent_impl.h"
#include "agent/lease_impl.h"
#include "agent/peer_impl.h"
#include "agent/transfer_impl.h"

namespace viaduct::agent {
namespace {

// A tag has, from its low bits: the slice's number, the place in flights_, and a count. The count
// gives each post another tag, although transfers use the same places one after the other.
constexpr unsigned kSliceBits = 16, kFlightBits = 24;
constexpr core::Tag kFlightMask = (core::Tag{1} << kFlightBits) - 1;

std::size_t flightOf(core::Tag tag) { return (tag >> kSliceBits) & kFlightMask; }

core::Tag tagOf(const core::Completion& completion) {
  return std::visit([](const auto& done) { return done.tag; }, completion);
}

}  // namespace

core::Tag AgentImpl::takeOff(TransferImpl& transfer) {
  if (free_flights_.empty()) {
    free_flights_.push_back(static_cast<std::uint32_t>(flights_.size()));
    flights_.push_back(nullptr);
  }
  const std::uint32_t place = free_flights_.back();
  free_flights_.pop_back();
  flights_[place] = &transfer;
  return core::Tag{++last_flight_ & 0xffffffU} << (kSliceBits + kFlightBits) | core::Tag{place}
                                                                                   << kSliceBits;
}

void AgentImpl::land(core::Tag tag) {
  flights_[flightOf(tag)] = nullptr;
  free_flights_.push_back(static_cast<std::uint32_t>(flightOf(tag)));
}

// One timer serves all transfers. Most end long before it is due, so a repeated post costs one
// comparison.
void AgentImpl::expectBy(Clock::time_point due) {
  if (due >= due_) return;
  due_ = due;
  if (due_timer_ != 0) engine_->poller().forgetTimer(due_timer_);
  due_timer_ = engine_->poller().at(due, [this] { tellOverdue(); });
}

void AgentImpl::tellOverdue() {
  due_timer_ = 0;
  due_ = Clock::time_point::max();
  applyEnded();  // a transfer that has ended is not overdue
  const auto now = this->now();
  for (TransferImpl* const transfer : std::vector(flights_))
    if (transfer != nullptr && transfer->due() <= now) transfer->overdue();
  for (const TransferImpl* const transfer : flights_)
    if (transfer != nullptr) expectBy(transfer->due());
}

// Also applies the completions of shared rails, so that a closing link gets all of its ops back.
void AgentImpl::apply(core::Completions& completions) {
  if (has_ended_.exchange(false))
    for (PolledRail* const polled : shared_rails_) polled->takeEnded(completions);
  // By index, so that the loop stays right if a call in it adds completions to the list.
  for (std::size_t i = 0; i < completions.size(); ++i) {
    const std::size_t place = flightOf(tagOf(completions[i]));
    if (place >= flights_.size() || flights_[place] == nullptr) continue;
    TransferImpl* const transfer = flights_[place];
    if (auto* moved = std::get_if<core::Moved>(&completions[i]); moved != nullptr)
      transfer->moved(*moved);
    else if (auto* staged = std::get_if<core::Staged>(&completions[i]); staged != nullptr)
      transfer->staged(std::move(*staged));
    else
      transfer->failed(std::get<core::Failed>(std::move(completions[i])));
  }
  completions.clear();
}

void AgentImpl::waitForRoom(std::shared_ptr<TransferImpl> transfer) {
  waiting_.push_back(std::move(transfer));
}

void AgentImpl::offerWaiting() {
  auto waiting = std::exchange(waiting_, {});
  std::erase_if(waiting, [](const auto& transfer) { return transfer->offerAgain(); });
  waiting.insert(waiting.end(), waiting_.begin(), waiting_.end());
  waiting_ = std::move(waiting);
}

std::vector<std::shared_ptr<TransferImpl>> AgentImpl::reachingTransfers() const {
  std::vector<std::shared_ptr<TransferImpl>> reaching;
  for (TransferImpl* const transfer : flights_)
    if (transfer != nullptr && transfer->reaching())
      reaching.push_back(transfer->shared_from_this());
  return reaching;
}

void AgentImpl::goOnReaching() {
  if (reaching_ == 0 || std::exchange(reaches_again_, true)) return;
  owe([self = shared_from_this()] {
    const auto reaching = [&] {
      const auto held = self->hold();
      self->reaches_again_ = false;
      return self->reachingTransfers();
    }();
    for (const auto& transfer : reaching) transfer->goOnReaching();
  });
}

void AgentImpl::endReaching(const PeerImpl* peer, const Error& why) {
  if (reaching_ == 0) return;
  for (const auto& transfer : reachingTransfers())
    if (peer == nullptr || &transfer->peer() == peer) transfer->abort(why);
}

void AgentImpl::abortUnder(const HeldLease& lease, const Error& why) {
  if (!lease.running()) return;
  for (TransferImpl* const transfer : std::vector(flights_)) {
    if (transfer == nullptr || transfer->lease() != &lease) continue;
    ++counts_.stale;
    transfer->abort(why);
  }
}

void AgentImpl::failTransfersOf(const PeerImpl& peer, const Error& why) {
  for (TransferImpl* const transfer : std::vector(flights_))
    if (transfer != nullptr && &transfer->peer() == &peer && !transfer->reaching())
      transfer->abort(why);
}

}  // namespace viaduct::agent
