#include "meet/kubernetes/held_lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"
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

// Another holder of the name, as this process has seen it so far. It is dead if it has not renewed
// its Lease for the Lease's time by our own clock.
class HeldLease::Rival {
 public:
  Rival(Site& site, const std::string& name_label) : waiter_(site.changes(), name_label) {}

  // True: it is dead. False: look again. An error: it lives, or `wait` is over.
  Result<bool> isDead(const Lease& there, const Wait& wait);

 private:
  Changes::Waiter waiter_;
  std::optional<WallTime> renewed_;
  Clock::time_point since_ = {};  // when we first saw it
};

Result<bool> HeldLease::Rival::isDead(const Lease& there, const Wait& wait) {
  const Error busy{
      .code = Code::kBusy,
      .operation = wait.operation,
      .detail = fmt::format("the name belongs to {}", there.holder.starts_with(ownProcess())
                                                          ? "this process"
                                                          : "another process, " + there.holder),
      .remedy = "use another name, or another group"};
  if (there.holder.starts_with(ownProcess())) return busy;
  const auto now = Clock::now();
  if (since_ == Clock::time_point()) {
    renewed_ = there.renewed;
    since_ = now;
  }
  if (renewed_ != there.renewed) return busy;
  const auto dead_at = since_ + timeOf(there);
  if (now >= dead_at) return true;
  Wait until_dead = wait;
  until_dead.until = std::min<Clock::time_point>(dead_at, wait.until);
  until_dead.missing = fmt::format("{} has the name, and may be dead", there.holder);
  const Status changed = waiter_.wait(there.version, true, until_dead);
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
  VIADUCT_CHECK(out->start());
  return std::unique_ptr<PublishedName>(std::move(out));
}

Status HeldLease::acquire(const Wait& wait) {
  std::optional<Rival> rival;
  for (;;) {
    VIADUCT_TRY(const bool created, create(wait));
    if (created) return Ok{};
    for (;;) {
      VIADUCT_TRY(const Site::Reading there, site_->read(lease_.agent, wait, *pace_));
      if (!there.lease) break;
      // An answer was lost, or somebody has edited the object.
      bool ours = there.lease->holder == lease_.holder;
      if (!ours) {
        if (!rival) rival.emplace(*site_, lease_.name_label);
        VIADUCT_TRY(ours, rival->isDead(*there.lease, wait));
      }
      if (!ours) continue;
      adopt(*there.lease);
      VIADUCT_TRY(const bool updated, update(wait));
      if (updated) return Ok{};
      if (wait.stopped()) return wait.cancelled();
    }
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
  VIADUCT_TRY(const Lease made, parseLease(answer.body));
  lease_.uid = made.uid;
  lease_.version = made.version;
  return true;
}

Status HeldLease::start() {
  const base::BlockedSignals blocked;
  try {
    thread_ = std::thread([this] { keep(); });
  } catch (const std::system_error& error) {
    withdraw();
    return systemError(Code::kExhausted, "start kubernetes' thread", error.code().value());
  }
  return Ok{};
}

// Renews the Lease each third of its time, for readers that judge its age. A failure is logged
// once, and the next try may succeed: the server keeps the Lease, and readers forget it meanwhile.
void HeldLease::keep() {
  pthread_setname_np(pthread_self(), "viaduct-lease");
  const Duration time = site_->leaseTime();
  const bool clocks_apart =
      std::chrono::abs(site_->client().serverTime() - *lease_.renewed) > kClocksApart;
  Duration pause = clocks_apart ? Duration::zero() : time / 4 + jittered(time / 12);
  bool failing = false;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (stopped_.wait_for(lock, pause, [this] { return stop_.load(); })) return;
    }
    const auto begun = Clock::now();
    const Status renewed = renew({.until = begun + time, .stop = &stop_});
    if (stop_) return;
    if (!renewed && !failing)
      base::log(base::LogLevel::kWarning, "the name \"{}\" is not renewed: {}", lease_.agent,
                renewed.error().text());
    if (renewed && failing)
      base::log(base::LogLevel::kWarning, "the name \"{}\" is renewed again", lease_.agent);
    failing = !renewed;
    pause =
        std::max<Duration>(begun + time / 4 + jittered(time / 12) - Clock::now(), Duration::zero());
  }
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

// Without a thread there is no Lease of ours.
HeldLease::~HeldLease() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
  withdraw();
}

}  // namespace viaduct::meet::kubernetes
