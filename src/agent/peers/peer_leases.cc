#include "agent/peers/peer_leases.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/peers/peer_impl.h"
#include "agent/session/frame_rules.h"
#include "agent/session/messages.h"
#include "core/byte_ranges.h"

namespace viaduct::agent {
namespace {

// The number of ended leases of which the outcome and the time are remembered.
constexpr std::size_t kRemembered = 1024;

Error bad(const char* operation, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = operation,
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

// A moment that far from now, or the end of time.
Clock::time_point after(Clock::time_point now, Duration wait) {
  return wait < Clock::time_point::max() - now ? now + wait : Clock::time_point::max();
}

Status checkDuration(const char* operation, Duration duration) {
  if (duration > Duration::zero()) return Ok{};
  return bad(operation, "a lease of no duration", "give a duration above zero");
}

// Counts the end of a lease.
void countEnd(LeaseStatistics& counts, LeaseState outcome) {
  --counts.live;
  switch (outcome) {
    case LeaseState::kReturned:
      ++counts.returned;
      break;
    case LeaseState::kExpired:
      ++counts.expired;
      break;
    case LeaseState::kRevoked:
      ++counts.revoked;
      break;
    default:
      ++counts.peer_lost;
  }
}

}  // namespace

PeerLeases::PeerLeases(Peers& peers, PeerImpl& peer)
    : basis_(peers.basis()), peers_(peers), peer_(peer) {}

Error PeerLeases::notCovered(std::uint64_t address) const {
  const bool limited = peer_.rights().isLimited();
  return {.code = Code::kDenied,
          .operation = "lease",
          .detail = limited ? fmt::format("no pin that the peer's Card grants covers {:#x}: {}",
                                          address, textOf(peer_.grants()))
                            : fmt::format("no pin covers the address {:#x}", address),
          .peer = peer_.name(),
          .remedy = limited ? "lend blocks of granted pins, or give the peer another Card"
                            : "pin the memory before it is lent"};
}

// Every range has to lie in pins.
Status PeerLeases::mayLend(const std::vector<Extent>& ranges, MemoryAccess access) const {
  const bool limited = peer_.rights().isLimited();
  const core::PinMap reached = limited ? reachedPins(access) : core::PinMap();
  const core::PinMap& pins = limited ? reached : basis_.pins().map();
  for (const Extent& range : ranges)
    for (std::uint64_t at = range.address; at < core::endOf(range);) {
      const core::PinRange* const pin = pins.cover(at, 1);
      if (pin == nullptr) return notCovered(at);
      if (access == MemoryAccess::kReadWrite && pin->read_only)
        return Error{.code = Code::kDenied,
                     .operation = "lease",
                     .detail = fmt::format("the pin at {:#x} is read-only", pin->address),
                     .remedy = "lend it for reading, or pin memory that can be written"};
      at = pin->address + pin->bytes;
    }
  return Ok{};
}

// The pins that a limited peer may read; for a lease for writing, the pins that it may write.
core::PinMap PeerLeases::reachedPins(MemoryAccess access) const {
  std::vector<core::PinRange> out(basis_.pins().map().ranges().begin(),
                                  basis_.pins().map().ranges().end());
  std::erase_if(out, [&](const core::PinRange& pin) {
    const core::PinRight right = peer_.rights().to(pin.slot, basis_.pins()[pin.slot].audience);
    return access == MemoryAccess::kReadOnly ? !right.read : !right.write;
  });
  return core::PinMap(std::move(out));
}

Result<std::shared_ptr<LentLease>> PeerLeases::lend(TakenBlocks taken, LeaseOptions options,
                                                    bool goes_on) {
  VIADUCT_CHECK(checkDuration("lease", options.duration));
  if (options.access == MemoryAccess::kWriteOnly)
    return bad("lease", "no lease is write-only", "lend for reading, or for reading and writing");
  if (!(goes_on ? peer_.isAlive() : peer_.state() == PeerState::kReady))
    return peer_.notReady("lease");
  VIADUCT_CHECK(mayLend(taken.ranges, options.access));
  if (lent_.size() >= kMostLent)
    return Error{.code = Code::kExhausted,
                 .operation = "lease",
                 .detail = fmt::format("{} leases to this peer are live", kMostLent),
                 .peer = peer_.name(),
                 .remedy = "lend more blocks with one lease, or for a shorter time"};
  if (const auto shared = basis_.lentRanges().add(taken.ranges, options.access))
    return bad("lease", fmt::format("another lease has the address {:#x}", *shared),
               "end that lease first; a lease for writing shares no byte with another one");
  auto lease = std::make_shared<LentLease>(basis_.shared_from_this(), peer_.shared_from_this(),
                                           ++last_number_, options.access, std::move(taken.blocks),
                                           std::move(options.on_end));
  lease->epoch = peer_.epoch();
  lease->borrower_id = peer_.theirId();
  lease->ranges = std::move(taken.ranges);
  lent_.emplace(lease->number(), lease);
  setDue(*lease, after(basis_.now(), basis_.lentFor(options.duration)));
  ++basis_.counts().lent.live;
  return lease;
}

base::Bytes PeerLeases::ticketOf(const LentLease& lease) const {
  return LeaseTicket{.owner = basis_.settings().name,
                     .borrower = peer_.name(),
                     .owner_id = basis_.id(),
                     .borrower_id = lease.borrower_id,
                     .epoch = lease.epoch,
                     .number = lease.number(),
                     .access = lease.access(),
                     .blocks = lease.blocks()}
      .encode();
}

Status PeerLeases::renew(LentLease& lease, Duration duration) {
  VIADUCT_CHECK(checkDuration("renew", duration));
  if (!lease.isLive()) return lease.stale("renew");
  setDue(lease, std::min(after(basis_.now(), duration), peers_.drainUntil()));
  return Ok{};
}

void PeerLeases::setDue(LentLease& lease, Clock::time_point due) {
  due_.erase({lease.due, &lease});
  lease.due = due;
  due_.emplace(due, &lease);
  arm();
}

// A timer that is early finds nothing to do, so the end of a lease does not change the timer.
void PeerLeases::arm() {
  if (due_.empty() || due_.begin()->first >= timer_at_) return;
  basis_.engine().poller().forgetTimer(timer_);
  timer_at_ = due_.begin()->first;
  timer_ = basis_.engine().poller().at(timer_at_, [this] { expire(); });
}

void PeerLeases::expire() {
  timer_ = 0;
  timer_at_ = Clock::time_point::max();
  const auto now = basis_.now();
  while (!due_.empty() && due_.begin()->first <= now) {
    LentLease& lease = *due_.begin()->second;
    if (lease.state() == LeaseState::kEnding) return endOverdue();
    endLent(lease, LeaseState::kExpired);
  }
  arm();
}

// Ends the session of a borrower that does not confirm the end of its accesses. Without a session
// it can begin none. If this process was stopped, the answer may have come meanwhile.
void PeerLeases::endOverdue() {
  peer_.readNow();
  if (due_.empty() || due_.begin()->second->state() != LeaseState::kEnding ||
      due_.begin()->first > basis_.now())
    return arm();
  peer_.lose({.code = Code::kPeerLost,
              .operation = "lease",
              .detail = fmt::format("the peer did not confirm the end of lease {} within the grace",
                                    due_.begin()->second->number()),
              .peer = peer_.name(),
              .cause = "the peer is frozen or unreachable"});
}

void PeerLeases::endLent(LentLease& lease, LeaseState outcome) {
  if (!lease.isLive()) return;
  lease.beginToEnd(outcome);
  setDue(lease, basis_.now() + basis_.settings().grace);
  peer_.tell(FrameType::kLeaseEnded,
             base::encode(LeaseEndedMessage{.number = lease.number(), .outcome = outcome}));
}

void PeerLeases::revokeWithin(const Extent& memory) {
  const auto meets = [&](const Extent& range) {
    return range.address < core::endOf(memory) && memory.address < core::endOf(range);
  };
  // If the agent lends to itself, endLent() takes the lease out of lent_, so the loop over lent_
  // must not call it.
  std::vector<std::shared_ptr<LentLease>> met;
  for (const auto& [number, lease] : lent_)
    if (std::ranges::any_of(lease->ranges, meets)) met.push_back(lease);
  for (const auto& lease : met) endLent(*lease, LeaseState::kRevoked);
}

void PeerLeases::endAll() {
  std::vector<std::shared_ptr<LentLease>> lent;
  std::vector<std::shared_ptr<HeldLease>> held;
  lent.reserve(lent_.size());
  held.reserve(held_.size());
  for (const auto& [number, lease] : lent_) lent.push_back(lease);
  for (const auto& [number, lease] : held_) held.push_back(lease);
  for (const auto& lease : lent) endLent(*lease, LeaseState::kRevoked);
  for (const auto& lease : held) giveBack(*lease);
}

void PeerLeases::finishLent(LentLease& lease, LeaseState outcome) {
  const auto kept = lease.shared_from_this();
  due_.erase({lease.due, &lease});
  lent_.erase(lease.number());
  basis_.lentRanges().remove(lease.ranges);
  countEnd(basis_.counts().lent, outcome);
  lease.end(outcome);
}

Result<std::shared_ptr<HeldLease>> PeerLeases::borrow(LeaseTicket ticket,
                                                      std::function<void(LeaseState)> on_end) {
  VIADUCT_CHECK(checkTicket(ticket));
  auto lease = std::make_shared<HeldLease>(basis_.shared_from_this(), peer_.shared_from_this(),
                                           ticket.number, ticket.access, std::move(ticket.blocks),
                                           std::move(on_end));
  held_.emplace(ticket.number, lease);
  ++basis_.counts().borrowed.live;
  return lease;
}

Status PeerLeases::checkTicket(const LeaseTicket& ticket) const {
  const auto session_was_lost = [&] {
    return staleError("borrow", ticket.number, LeaseState::kPeerLost, "", peer_.name());
  };
  if (ticket.borrower_id != basis_.id()) {
    if (ticket.borrower == basis_.settings().name) return session_was_lost();  // before a restart
    return Error{.code = Code::kDenied,
                 .operation = "borrow",
                 .detail = fmt::format("the lease is for agent {}, not {}", ticket.borrower,
                                       basis_.settings().name),
                 .peer = peer_.name(),
                 .remedy = "pass tickets that name this agent"};
  }
  if (ticket.owner != peer_.name())
    return Error{.code = Code::kInvalid,
                 .operation = "borrow",
                 .detail = fmt::format("the ticket is from agent {}", ticket.owner),
                 .peer = peer_.name(),
                 .remedy = "borrow from the peer that made the ticket"};
  if (ticket.epoch < peer_.epoch() || ticket.epoch == peer_.endedEpoch()) return session_was_lost();
  if (!peer_.isAlive()) return peer_.notReady("borrow");
  if (ticket.owner_id != peer_.theirId()) return session_was_lost();
  if (ticket.epoch > peer_.epoch())
    return bad("borrow", "the ticket names a session that has not begun",
               "pass the bytes that Lease::ticket() returned");
  if (ended_.has(ticket.number)) return endedBefore(ticket);
  if (held_.contains(ticket.number))
    return bad("borrow", fmt::format("lease {} is borrowed already", ticket.number),
               "use the first BorrowedLease");
  return Ok{};
}

Error PeerLeases::endedBefore(const LeaseTicket& ticket) const {
  ++basis_.counts().stale;
  const auto known = std::ranges::find(recent_, ticket.number, &EndedLease::number);
  const bool exact = known != recent_.end();
  const EndedLease& ended = exact ? *known : recent_.front();
  return staleError("borrow", ticket.number, exact ? ended.outcome : LeaseState::kEnding,
                    (exact ? "" : "more than ") + ago(basis_.now() - ended.at), peer_.name());
}

void PeerLeases::rememberEnded(std::uint64_t number, LeaseState outcome) {
  ended_.add(number);
  if (recent_.size() == kRemembered) recent_.pop_front();
  recent_.push_back({number, outcome, basis_.now()});
}

void PeerLeases::giveBack(HeldLease& lease) {
  if (!lease.isLive()) return;
  const SectionsShut shut(basis_.rails());  // no thread copies under the lease any more
  lease.beginToEnd(LeaseState::kReturned);
  if (!lease.running()) settle(lease);
}

void PeerLeases::settle(HeldLease& lease) {
  const bool mine = !ended_.has(lease.number());  // the owner has not ended it
  const base::Bytes payload = base::encode(LeaseMessage{lease.number()});
  if (mine) {
    peer_.tellReturned(payload);
    rememberEnded(lease.number(), LeaseState::kReturned);
  } else {
    peer_.tell(FrameType::kLeaseSettled, payload);
  }
  finishHeld(lease, lease.outcome());
}

void PeerLeases::finishHeld(HeldLease& lease, LeaseState outcome) {
  const auto kept = lease.shared_from_this();
  held_.erase(lease.number());
  countEnd(basis_.counts().borrowed, outcome);
  lease.end(outcome);
}

Status PeerLeases::heard(FrameType type, std::span<const std::byte> payload) {
  return type == FrameType::kLeaseEnded ? heardEnded(payload) : heardAnswer(type, payload);
}

// The peer ends a lease of its blocks. The answer says that no access here is left. A lease that
// was given back meanwhile, or whose ticket has not come, has no accesses.
Status PeerLeases::heardEnded(std::span<const std::byte> payload) {
  VIADUCT_TRY(const auto message, base::decode<LeaseEndedMessage>(payload));
  if (!ended_.has(message.number)) rememberEnded(message.number, message.outcome);
  if (ended_.intervals() > kMostLent + 1)
    return brokenRule(
        fmt::format("{} leases are live: the limit is {}", ended_.intervals() - 1, kMostLent));
  const auto found = held_.find(message.number);
  if (found == held_.end()) {
    peer_.tell(FrameType::kLeaseSettled, base::encode(LeaseMessage{message.number}));
    return Ok{};
  }
  const auto lease = found->second;
  const SectionsShut shut(basis_.rails());  // no thread copies under the lease any more
  lease->beginToEnd(message.outcome);
  if (!lease->running()) {
    settle(*lease);
    return Ok{};
  }
  peers_.transfers().abortUnder(*lease, staleError("transfer", lease->number(), message.outcome,
                                                   "during the transfer", peer_.name()));
  return Ok{};
}

// The borrower answers kLeaseEnded, or gives a lease back.
Status PeerLeases::heardAnswer(FrameType type, std::span<const std::byte> payload) {
  VIADUCT_TRY(const auto message, base::decode<LeaseMessage>(payload));
  if (message.number > last_number_)
    return brokenRule(
        fmt::format("lease {} was never lent: the last one is {}", message.number, last_number_));
  const auto found = lent_.find(message.number);
  if (found == lent_.end()) return Ok{};  // the two ends ended it at once
  LentLease& lease = *found->second;
  const bool returned = type == FrameType::kLeaseReturned;
  if (!returned && lease.isLive()) return brokenRule("a lease that was not ended is settled");
  finishLent(lease, returned ? LeaseState::kReturned : lease.outcome());
  return Ok{};
}

void PeerLeases::sessionOver() {
  while (!lent_.empty()) finishLent(*lent_.begin()->second, LeaseState::kPeerLost);
  while (!held_.empty()) finishHeld(*held_.begin()->second, LeaseState::kPeerLost);
  basis_.engine().poller().forgetTimer(std::exchange(timer_, 0));
  timer_at_ = Clock::time_point::max();
  last_number_ = 0;
  ended_.clear();
  recent_.clear();
}

}  // namespace viaduct::agent
