// AgentImpl: its running postings.
#include <algorithm>
#include <utility>

#include "agent/agent_impl.h"
#include "agent/lease_impl.h"
#include "agent/peer_impl.h"
#include "agent/transfer_impl.h"

namespace viaduct::agent {

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
  rails_.deliverEnded();  // a transfer that has ended is not overdue
  const auto now = this->now();
  running_.forEach([&](Posting& posting) {
    if (posting.due() <= now) posting.overdue();
  });
  running_.forEach([this](const Posting& posting) { expectBy(posting.due()); });
}

std::vector<std::shared_ptr<TransferImpl>> AgentImpl::reachingTransfers() const {
  std::vector<std::shared_ptr<TransferImpl>> reaching;
  for (TransferImpl* const transfer : reaching_) reaching.push_back(transfer->shared_from_this());
  return reaching;
}

void AgentImpl::goOnReaching() {
  if (reaching_.empty() || std::exchange(reaches_again_, true)) return;
  owe([self = shared()] {
    const auto reaching = [&] {
      const auto held = self->hold();
      self->reaches_again_ = false;
      return self->reachingTransfers();
    }();
    for (const auto& transfer : reaching) transfer->goOnReaching();
  });
}

void AgentImpl::endReaching(const PeerImpl* peer, const Error& why) {
  for (const auto& transfer : reachingTransfers())
    if (peer == nullptr || &transfer->peer() == peer) transfer->abort(why);
}

void AgentImpl::abortUnder(const HeldLease& lease, const Error& why) {
  if (!lease.running()) return;
  running_.forEach([&](Posting& posting) {
    if (!posting.isUnder(lease)) return;
    ++counts().stale;
    posting.abort(why);
  });
}

void AgentImpl::failTransfersOf(const PeerImpl& peer, const Error& why) {
  running_.forEach([&](Posting& posting) {
    if (&posting.peer() == &peer) posting.peerLost(why);
  });
}

}  // namespace viaduct::agent
