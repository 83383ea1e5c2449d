#include "meet/kubernetes/held_lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/log.h"

namespace viaduct::meet::kubernetes {
namespace {

using std::chrono::seconds;

constexpr seconds kGoodbye{2};
// Beyond such a difference of clocks, readers could take a fresh Lease for a dead one.
constexpr seconds kClocksApart{2};

// Each published name of each process has a holder of its own.
std::string newHolder() {
  static std::atomic<std::uint64_t> count = 0;
  return fmt::format("{}_{}", ownProcess(), ++count);
}

}  // namespace

// A rival is dead if it has not renewed its Lease for the Lease's time by our own clock.
Result<bool> HeldLease::isDead(const Lease& there, const Wait& wait) {
  const bool own = there.holder.starts_with(ownProcess());
  const Error busy{.code = Code::kBusy,
                   .operation = wait.operation,
                   .detail = fmt::format("the name belongs to {}",
                                         own ? "this process" : "another process, " + there.holder),
                   .remedy = "use another name, or another group"};
  if (own) return busy;
  if (!rival_) rival_.emplace(site_->changes(), lease_.name_label, there.renewed);
  if (rival_->renewed != there.renewed) {
    rival_.reset();
    return busy;
  }
  const auto dead_at = rival_->since + timeOf(there);
  if (Clock::now() >= dead_at) return true;
  Wait until_dead = wait;
  until_dead.until = std::min<Clock::time_point>(dead_at, wait.until);
  until_dead.missing = fmt::format("{} has the name, and may be dead", there.holder);
  const Status changed = rival_->waiter.wait(there.version, true, until_dead);
  if (!changed && changed.error().code != Code::kTimeout) return changed.error();
  if (!changed && Clock::now() >= wait.until) return busy;
  return false;
}

Result<std::unique_ptr<PublishedName>> HeldLease::make(std::shared_ptr<Site> site,
                                                       std::shared_ptr<Pace> pace,
                                                       const std::string& name,
                                                       const std::string& value, const Wait& wait) {
  Lease lease = site->leaseOf(name);
  lease.value = value;
  lease.holder = newHolder();
  std::unique_ptr<HeldLease> out(new HeldLease(std::move(site), std::move(pace), std::move(lease)));
  VIADUCT_CHECK(out->acquire(wait));
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

Status HeldLease::acquire(const Wait& wait) {
  for (;;) {
    VIADUCT_TRY(const bool created, create(wait));
    if (created) break;
    for (;;) {
      VIADUCT_TRY(const Site::Reading there, site_->read(lease_.agent, wait, *pace_));
      if (!there.lease) break;
      // An answer was lost, or somebody has edited the object.
      bool ours = there.lease->holder == lease_.holder;
      if (!ours) {
        VIADUCT_TRY(ours, isDead(*there.lease, wait));
      }
      if (!ours) continue;
      adopt(*there.lease);
      VIADUCT_TRY(const bool updated, update(wait));
      if (updated) {
        rival_.reset();
        return Ok{};
      }
      if (wait.stopped()) return wait.cancelled();
    }
  }
  rival_.reset();
  return Ok{};
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
  VIADUCT_TRY(const Lease made, parseLease(answer.body));
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
  const auto begun = Clock::now();
  // The other Leases of this process wait for this call.
  const Duration time = site_->leaseTime();
  const Status renewed = renew({.until = begun + time / 3, .stop = &stop_});
  if (!stop_ && !renewed && !failing_)
    base::log(base::LogLevel::kWarning, "the name \"{}\" is not renewed: {}", lease_.agent,
              renewed.error().text());
  if (renewed && failing_)
    base::log(base::LogLevel::kWarning, "the name \"{}\" is renewed again", lease_.agent);
  failing_ = !renewed;
  return nextRenewal(begun);
}

// The Lease may be gone after an outage, or changed by an operator.
Status HeldLease::renew(const Wait& wait) {
  VIADUCT_TRY(const bool updated, update(wait));
  if (updated) return Ok{};
  return acquire(wait);
}

// Deletes the Lease, unless another process has it.
void HeldLease::withdraw() {
  const Wait wait{.until = Clock::now() + kGoodbye};
  for (int tries = 0; tries < 2; ++tries) {
    const LeaseRequest request{.verb = "delete", .name = lease_.name, .body = deleteJson(lease_)};
    const auto answer = site_->client().call(request, wait, *pace_);
    // Another state than ours may come from a renewal whose answer we did not await.
    if (!answer || answer->status != 409) return;
    const auto there = site_->read(lease_.agent, wait, *pace_);
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
