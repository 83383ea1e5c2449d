#include "agent/peers/lease_impl.h"

#include <fmt/format.h>

#include <chrono>

#include "agent/peers/peer_impl.h"
#include "base/sizes.h"

namespace viaduct::agent {
namespace {

const char* verbOf(LeaseState outcome) {
  switch (outcome) {
    case LeaseState::kReturned:
      return "was given back";
    case LeaseState::kExpired:
      return "expired";
    case LeaseState::kRevoked:
      return "was revoked";
    case LeaseState::kPeerLost:
      return "ended with its session";
    default:
      return "ended";  // how it ended is not known any more
  }
}

}  // namespace

std::string ago(Duration late) {
  using std::chrono::microseconds, std::chrono::milliseconds;
  const auto shown = late < milliseconds(10) ? std::chrono::floor<microseconds>(late)
                                             : std::chrono::floor<milliseconds>(late);
  return fmt::format("{} before", base::formatDuration(shown));
}

Error staleError(const char* operation, std::uint64_t number, LeaseState outcome,
                 const std::string& when, const std::string& peer) {
  return {.code = Code::kStale,
          .operation = operation,
          .detail = fmt::format("lease {} {}{}{}", number, verbOf(outcome), when.empty() ? "" : " ",
                                when),
          .peer = peer,
          .cause = "the owner needed its blocks again, or the lease was too short",
          .remedy = "get a new lease from the owner"};
}

LeaseEnd::LeaseEnd(std::shared_ptr<Basis> basis, std::shared_ptr<PeerImpl> peer,
                   std::uint64_t number, MemoryAccess access, Blocks blocks,
                   std::function<void(LeaseState)> on_end)
    : basis_(std::move(basis)),
      peer_(std::move(peer)),
      number_(number),
      access_(access),
      blocks_(std::move(blocks)),
      on_end_(std::move(on_end)) {}

LeaseEnd::~LeaseEnd() = default;

Result<LeaseState> LeaseEnd::wait(Deadline until) const {
  const auto over = [this] { return isOutcome(state()); };
  if (!over()) {
    VIADUCT_CHECK(basis_->ofThisProcess("wait"));
    if (!basis_->engine().wait(over, until.at(), &watchers_))
      return Error{.code = Code::kTimeout,
                   .operation = "wait",
                   .detail = fmt::format("lease {} has not ended", number_)};
  }
  return state();
}

Error LeaseEnd::stale(const char* operation) const {
  return staleError(operation, number_, outcome_, ago(basis_->now() - refused_since_),
                    peer_->name());
}

void LeaseEnd::beginToEnd(LeaseState outcome) {
  if (outcome_ == LeaseState::kLive) refused_since_ = basis_->now();
  outcome_ = outcome;
  state_.store(LeaseState::kEnding, std::memory_order_release);
}

void LeaseEnd::end(LeaseState outcome) {
  beginToEnd(outcome);
  state_.store(outcome, std::memory_order_release);
  basis_->engine().changed();
  basis_->ringBell();
  watchers_.tell();
  if (on_end_) basis_->owe([told = std::exchange(on_end_, {}), outcome] { told(outcome); });
}

void HeldLease::leave() {
  if (--running_ == 0 && state() == LeaseState::kEnding) peer().leases().settle(*this);
}

Error HeldLease::refusal(const char* operation) const {
  ++basis().counts().stale;
  return stale(operation);
}

}  // namespace viaduct::agent
