#include <viaduct/lease.h>

#include <utility>

#include "agent/peers/lease_impl.h"
#include "agent/peers/peer_impl.h"
#include "base/log.h"

namespace viaduct {
namespace {

using agent::isOutcome, agent::LentLease;

// The interval at which revoke() checks whether a stopped peer has left the memory.
constexpr Duration kLookEvery = std::chrono::milliseconds(1);

// After the loss of the peer, waits until it can no longer touch the blocks, at most for the grace.
Status waitUntilLeft(LentLease& lease, agent::PeerImpl& peer) {
  agent::Basis& agent = lease.basis();
  const auto until = agent.now() + agent.settings().grace;
  const auto over = [&] { return peer.settled() || agent.now() >= until; };
  while (!agent.engine().waitHeld(over, Clock::now() + kLookEvery)) {
  }
  if (peer.settled()) return Ok{};
  return Error{.code = Code::kPeerLost,
               .operation = "revoke",
               .detail = "the peer was stopped inside a copy, which it may still finish",
               .peer = peer.name(),
               .remedy = "leave the blocks alone until Peer::settled() is true"};
}

Status revoke(LentLease& lease) {
  const auto held = lease.basis().hold();
  if (!held) return Ok{};  // in a fork()ed child the lease belongs to the parent
  lease.peer().leases().endLent(lease, LeaseState::kRevoked);
  lease.basis().engine().waitHeld([&] { return isOutcome(lease.state()); },
                                  Clock::time_point::max());
  if (lease.state() != LeaseState::kPeerLost) return Ok{};
  agent::PeerImpl* peer = &lease.peer();
  while (peer->same_as) peer = peer->same_as.get();
  return waitUntilLeft(lease, *peer);
}

}  // namespace

Lease::Lease(std::shared_ptr<LentLease> impl) : impl_(std::move(impl)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  Lease old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Lease::~Lease() {
  if (!impl_) return;
  const LeaseState state = impl_->state();
  if (isOutcome(state) && state != LeaseState::kPeerLost) return;
  if (const auto revoked = viaduct::revoke(*impl_); !revoked)
    base::log(base::LogLevel::kError, "{}", revoked.error().text());
}

std::uint64_t Lease::number() const { return impl_->number(); }

std::vector<std::byte> Lease::ticket() const {
  const auto held = impl_->basis().hold();
  return impl_->peer().leases().ticketOf(*impl_);
}

Status Lease::renew(Duration duration) {
  const auto held = impl_->basis().hold();
  VIADUCT_CHECK(impl_->basis().ofThisProcess("renew"));
  return impl_->peer().leases().renew(*impl_, duration);
}

Status Lease::revoke() { return viaduct::revoke(*impl_); }
LeaseState Lease::state() const { return impl_->state(); }
Result<LeaseState> Lease::wait(Deadline until) const { return impl_->wait(until); }

BorrowedLease::BorrowedLease(std::shared_ptr<agent::HeldLease> impl) : impl_(std::move(impl)) {}
BorrowedLease::BorrowedLease(BorrowedLease&&) noexcept = default;

BorrowedLease& BorrowedLease::operator=(BorrowedLease&& other) noexcept {
  BorrowedLease old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

BorrowedLease::~BorrowedLease() {
  if (impl_) giveBack();
}

std::uint64_t BorrowedLease::number() const { return impl_->number(); }
MemoryAccess BorrowedLease::access() const { return impl_->access(); }
const Blocks& BorrowedLease::blocks() const { return impl_->blocks(); }

void BorrowedLease::giveBack() {
  const auto held = impl_->basis().hold();
  if (held) impl_->peer().leases().giveBack(*impl_);
}

LeaseState BorrowedLease::state() const { return impl_->state(); }
Result<LeaseState> BorrowedLease::wait(Deadline until) const { return impl_->wait(until); }

}  // namespace viaduct
