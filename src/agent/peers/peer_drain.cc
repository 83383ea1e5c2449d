// PeerImpl: drains, in which one end of a session is about to leave.
// docs/design/0063-drain.md
#include <fmt/format.h>

#include <utility>

#include "agent/peers/peer_impl.h"
#include "agent/session/messages.h"
#include "base/log.h"

namespace viaduct::agent {
namespace {

constexpr bool isDrain(std::uint32_t announcement) { return announcement % 2 != 0; }

}  // namespace

bool PeerImpl::drains() const {
  if (phase_.is(PeerPhase::kDraining)) return true;
  if (isAlive()) return isDrain(their_drain_);
  // The peer refused a session because it drains. After its goodbye, a successor may take its
  // address.
  return !phase_.is(PeerPhase::kGone) && last_error_ && last_error_->code == Code::kDraining;
}

Error PeerImpl::drainError(const char* operation) const {
  if (peers_.drains()) {
    Error why = peers_.drainError(operation);
    why.peer = name_;
    return why;
  }
  return {.code = Code::kDraining,
          .operation = operation,
          .detail = "the peer drains: it is about to leave and begins nothing new",
          .peer = name_,
          .cause = "it is stopped or replaced, for example by a rolling update",
          .remedy = "go on with another peer: Agent::find() waits for the successor of that name"};
}

Error PeerImpl::leftError() const {
  return {.code = Code::kDraining,
          .operation = "session",
          .detail = "the peer has drained and left",
          .peer = name_,
          .remedy = "go on with another peer: Agent::find() waits for the successor of that name"};
}

// Shuts the sections (move/sections.h), so that a thread that copies in one sees the new phase
// before its next piece. Its post counts in halfway_ by then.
void PeerImpl::followDrain() {
  const bool drains = peers_.drains() || isDrain(their_drain_);
  if (!isOpen() || drains == phase_.is(PeerPhase::kDraining)) return;
  const SectionsShut shut(basis_.rails());
  phase_.step(drains ? PeerPhase::kDrain : PeerPhase::kUndrain);
  peers_.transfers().goOnReaching();
  basis_.ringBell();
  changed();
}

void PeerImpl::announceDrain() {
  followDrain();
  if (own_ || !isAlive() || isDrain(own_drain_) == peers_.drains()) return;
  ++own_drain_;
  heard_left_.reset();
  tell(FrameType::kDraining, base::encode(DrainingMessage{own_drain_}));
}

void PeerImpl::heardDraining(std::span<const std::byte> payload) {
  const auto message = base::decode<DrainingMessage>(payload);
  if (!message) return breakOff(message.error());
  if (message->number != their_drain_ + 1)
    return breakOff(brokenRule(fmt::format("announcement {} of a drain came after number {}",
                                           message->number, their_drain_)));
  their_drain_ = message->number;
  told_left_.reset();
  base::log(base::LogLevel::kInfo, "peer {} {}", name_,
            isDrain(their_drain_) ? "drains" : "drains no more");
  followDrain();
  if (isDrain(their_drain_)) tellLeft();
}

void PeerImpl::heardDrainLeft(std::span<const std::byte> payload) {
  const auto message = base::decode<DrainLeftMessage>(payload);
  if (!message) return breakOff(message.error());
  if (message->number > own_drain_)
    return breakOff(
        brokenRule(fmt::format("an answer to announcement {} of a drain: the last "
                               "one was {}",
                               message->number, own_drain_)));
  if (message->number != own_drain_) return;  // it answers an earlier drain
  heard_left_ = *message;
  basis_.engine().changed();
}

Transfers::RunningTransfers PeerImpl::running() {
  auto out = peers_.transfers().runningWith(*this);
  out.transfers += halfway_.load(std::memory_order_relaxed);
  return out;
}

void PeerImpl::tellLeft() {
  const auto now = running();
  const DrainLeftMessage message{
      .number = their_drain_, .transfers = now.transfers, .bytes = now.bytes};
  if (told_left_ == message) return;
  told_left_ = message;
  tell(FrameType::kDrainLeft, base::encode(message));
}

void PeerImpl::endHalfway() {
  halfway_.fetch_sub(1, std::memory_order_relaxed);
  postEnded();
}

void PeerImpl::postEnded() {
  if (!isAlive() || !isDrain(their_drain_)) return;
  linkChanged();
  basis_.engine().takeOverNow();
}

DrainLeft PeerImpl::drainLeft() {
  DrainLeft out{.peer = name_, .answered = true};
  if (!isAlive()) return out;
  const auto now = running();
  out.transfers = now.transfers;
  out.bytes = now.bytes;
  out.lent = leases_.lent();
  out.borrowed = leases_.borrowed();
  out.streams = marks_.open();
  out.fetches = peers_.parcels().running(*this);
  if (own_) return out;
  out.answered = heard_left_.has_value();
  if (heard_left_) {
    out.their_transfers = heard_left_->transfers;
    out.their_bytes = heard_left_->bytes;
  }
  out.unsent_bytes = session_->connection().unsent();
  return out;
}

bool PeerImpl::isLeft(const DrainLeft& left) {
  return !left.answered || (left.transfers | left.their_transfers | left.lent | left.borrowed |
                            left.streams | left.fetches | left.unsent_bytes) != 0;
}

// The redialer forgets the address, because the successor may have it.
void PeerImpl::giveUpName() {
  gave_up_name_ = true;
  redialer_.forget();
}

void PeerImpl::forgetDrained() {
  if (!isAlive() && last_error_ && last_error_->code == Code::kDraining) last_error_.reset();
}

}  // namespace viaduct::agent
