#include "meet/kubernetes/held_lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace viaduct::meet::kubernetes {
namespace {

using std::chrono::seconds;

constexpr seconds kGoodbye{2};
// Beyond such a difference of clocks, readers could take a fresh Lease for a dead one.
constexpr seconds kClocksApart{2};

}  // namespace

HeldLease::HeldLease(std::shared_ptr<Site> site, std::shared_ptr<Pace> pace,
                     const LeaseTitle& title, const Claim& claim)
    : site_(std::move(site)),
      pace_(std::move(pace)),
      title_(title),
      lost_(claim.lost),
      lease_(site_->leaseOf(title)) {
  lease_.value = claim.value;
  lease_.holder = holder_.text();
}

Result<std::unique_ptr<PublishedName>> HeldLease::make(std::shared_ptr<Site> site,
                                                       std::shared_ptr<Pace> pace,
                                                       const LeaseTitle& title, const Claim& claim,
                                                       const Wait& wait) {
  std::unique_ptr<HeldLease> out(new HeldLease(std::move(site), std::move(pace), title, claim));
  VIADUCT_TRY(const bool ours, out->acquire(wait));
  if (!ours) return std::unique_ptr<PublishedName>();
  out->renewed_at_ = Clock::now();
  const bool clocks_apart =
      std::chrono::abs(out->site_->client().serverTime() - *out->lease_.renewed) > kClocksApart;
  const Status kept = out->site_->renewals().add(
      *out, clocks_apart ? Clock::now() : out->nextRenewal(Clock::now()));
  out->kept_ = static_cast<bool>(kept);
  if (!kept) {
    out->withdraw();
    return kept.error();
  }
  return std::unique_ptr<PublishedName>(std::move(out));
}

// Each write names the version that was read, so of two processes one succeeds.
Result<bool> HeldLease::acquire(const Wait& wait) {
  for (;;) {
    VIADUCT_TRY(const bool created, create(wait));
    if (created) return true;
    VIADUCT_TRY(const Site::Reading there, site_->read(title_, wait, *pace_));
    if (!there.lease) continue;
    // A Lease with our holder exists if an answer was lost, or if somebody has edited the object.
    const bool ours = there.lease->holder == lease_.holder;
    if (!ours && there.life != Site::Life::kDead) return false;
    adopt(*there.lease);
    VIADUCT_TRY(const bool updated, update(wait));
    if (updated) return true;
    if (wait.stopped()) return wait.cancelled();
  }
}

void HeldLease::adopt(const Lease& there) {
  lease_.uid = there.uid;
  lease_.version = there.version;
  lease_.takeovers = there.takeovers + (there.holder == lease_.holder ? 0 : 1);
}

Result<bool> HeldLease::create(const Wait& wait) {
  lease_.uid = lease_.version = "";
  lease_.takeovers = 0;
  return write("create", wait);
}

Result<bool> HeldLease::update(const Wait& wait) { return write("update", wait); }

Result<bool> HeldLease::write(const char* verb, const Wait& wait) {
  const bool creates = lease_.version.empty();
  lease_.renewed = site_->client().serverTime();
  if (creates) lease_.acquired = *lease_.renewed;
  auto body = leaseJson(lease_);
  if (!body) {
    Error why = std::move(body).error();
    why.operation = wait.operation;
    return why;
  }
  const LeaseRequest request{
      .verb = verb, .name = creates ? "" : lease_.name, .body = *std::move(body)};
  VIADUCT_TRY(const Answer answer, site_->client().call(request, wait, *pace_));
  if (answer.status < 200 || answer.status > 299) return false;
  VIADUCT_TRY(const Lease made, answerOf(site_->client().text(), wait, parseLease(answer.body)));
  lease_.uid = made.uid;
  lease_.version = made.version;
  return true;
}

Clock::time_point HeldLease::nextRenewal(Clock::time_point last) const {
  const Duration time = site_->leaseTime();
  return last + time / 4 + jittered(time / 12);
}

// Readers judge the age of the Lease, so it is renewed each third of its time. A failure is logged
// once, and the next try may succeed: the server keeps the Lease, and readers forget it meanwhile.
Clock::time_point HeldLease::renew() {
  constexpr auto kNever = Clock::time_point::max();
  if (leaving_) withdraw();
  if (leaving_ || given_up_) return kNever;
  const auto begun = Clock::now();
  // The other Leases of this process wait for this call, so its time is limited.
  const Duration time = site_->leaseTime();
  const Status renewed = renew({.until = begun + time / 3, .stop = &stop_});
  if (stop_) return kNever;
  if (!renewed) {
    failed(renewed.error());
    return nextRenewal(begun);
  }
  if (failing_)
    base::log(base::LogLevel::kWarning, "the name \"{}\" is renewed again", lease_.agent);
  failing_ = false;
  renewed_at_ = begun;
  return nextRenewal(begun);
}

void HeldLease::failed(const Error& why) {
  const bool free_for_others = Clock::now() - renewed_at_ >= Duration(site_->leaseTime());
  if (lost_ && (why.code == Code::kPeerLost || free_for_others)) {
    given_up_ = true;
    Error lost = why;
    lost.code = Code::kPeerLost;
    return lost_(lost);
  }
  if (!std::exchange(failing_, true))
    base::log(base::LogLevel::kWarning, "the name \"{}\" is not renewed: {}", lease_.agent,
              why.text());
}

// Acquires the Lease anew if the update fails: it may be gone after an outage, or changed by an
// operator.
Status HeldLease::renew(const Wait& wait) {
  VIADUCT_TRY(const bool updated, update(wait));
  if (updated) return Ok{};
  VIADUCT_TRY(const bool ours, acquire(wait));
  if (ours) return Ok{};
  return Error{.code = Code::kPeerLost,
               .operation = "kubernetes",
               .detail = fmt::format("another process has taken over {}", lease_.name),
               .cause =
                   "this process was stopped, or could not reach the API server, for longer "
                   "than the Lease",
               .remedy = "start it again, or give it another name"};
}

void HeldLease::withdrawSoon() {
  leaving_ = true;
  site_->renewals().hurry(*this);
}

// Deletes the Lease, unless another process has it.
void HeldLease::withdraw() {
  if (std::exchange(withdrawn_, true)) return;
  const Wait wait{.until = Clock::now() + kGoodbye};
  for (int tries = 0; tries < 2; ++tries) {
    const LeaseRequest request{.verb = "delete", .name = lease_.name, .body = deleteJson(lease_)};
    const auto answer = site_->client().call(request, wait, *pace_);
    // Another state than ours may come from a renewal whose answer we did not await.
    if (!answer || answer->status != 409) return;
    const auto there = site_->read(title_, wait, *pace_);
    if (!there || !there->lease || there->lease->holder != lease_.holder) return;
    adopt(*there->lease);
  }
}

HeldLease::~HeldLease() {
  if (!kept_) return;
  stop_ = true;
  site_->renewals().remove(*this);
  withdraw();
}

}  // namespace viaduct::meet::kubernetes
