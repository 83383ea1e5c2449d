#include "agent/traffic/traffic.h"

#include <algorithm>
#include <utility>

#include "agent/peers/lease_impl.h"
#include "agent/peers/peer_impl.h"
#include "agent/traffic/transfer_impl.h"

namespace viaduct::agent {

// One timer serves all transfers. Most end long before it is due, so a repeated post costs one
// comparison.
void Traffic::expectBy(Clock::time_point due) {
  if (due >= due_) return;
  due_ = due;
  if (due_timer_ != 0) basis_.engine().poller().forgetTimer(due_timer_);
  due_timer_ = basis_.engine().poller().at(due, [this] { tellOverdue(); });
}

void Traffic::tellOverdue() {
  due_timer_ = 0;
  due_ = Clock::time_point::max();
  basis_.rails().deliverEnded();  // a transfer that has ended is not overdue
  const auto now = basis_.now();
  running_.forEach([&](Posting& posting) {
    if (posting.due() <= now) posting.overdue();
  });
  running_.forEach([this](const Posting& posting) { expectBy(posting.due()); });
}

std::vector<std::shared_ptr<TransferImpl>> Traffic::reachingTransfers() const {
  std::vector<std::shared_ptr<TransferImpl>> reaching;
  reaching.reserve(reaching_.size());
  for (TransferImpl* const transfer : reaching_) reaching.push_back(transfer->shared_from_this());
  return reaching;
}

void Traffic::goOnReaching() {
  if (reaching_.empty() || std::exchange(reaches_again_, true)) return;
  basis_.owe([this, alive = basis_.shared_from_this()] {
    const auto reaching = [&] {
      const auto held = basis_.hold();
      reaches_again_ = false;
      return reachingTransfers();
    }();
    for (const auto& transfer : reaching) transfer->goOnReaching();
  });
}

void Traffic::endReaching(const PeerImpl* peer, const Error& why) {
  for (const auto& transfer : reachingTransfers())
    if (peer == nullptr || &transfer->peer() == peer) transfer->abort(why);
}

void Traffic::abortUnder(const HeldLease& lease, const Error& why) {
  if (!lease.running()) return;
  running_.forEach([&](Posting& posting) {
    if (!posting.isUnder(lease)) return;
    ++basis_.counts().stale;
    posting.abort(why);
  });
}

void Traffic::failUsing(const PeerImpl& peer, std::uint32_t remote_slot) {
  basis_.rails().deliverEnded();  // a transfer whose bytes are all there does not fail
  running_.forEach([&](Posting& posting) {
    if (&posting.peer() == &peer && posting.usesRemote(remote_slot))
      posting.fail({.code = Code::kDenied,
                    .operation = "transfer",
                    .detail = "the peer released the memory during the transfer",
                    .peer = peer.name()});
  });
}

Transfers::RunningTransfers Traffic::runningWith(const PeerImpl& peer) {
  RunningTransfers out;
  running_.forEach([&](const Posting& posting) {
    if (&posting.peer() != &peer) return;
    ++out.transfers;
    out.bytes += posting.bytes();
  });
  return out;
}

void Traffic::failTransfersOf(const PeerImpl& peer, const Error& why) {
  running_.forEach([&](Posting& posting) {
    if (&posting.peer() == &peer) posting.peerLost(why);
  });
}

}  // namespace viaduct::agent
