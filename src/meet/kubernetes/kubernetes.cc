#include "meet/kubernetes/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "meet/kubernetes/held_lease.h"
#include "meet/kubernetes/names.h"
#include "meet/kubernetes/site.h"

namespace viaduct::meet::kubernetes {
namespace {

// Deadline::never() becomes a year, so that later additions do not overflow.
Clock::time_point endOf(Deadline until) {
  return std::min(until.at(), Clock::now() + std::chrono::hours(24 * 365));
}

class KubernetesPlace final : public MeetingPlace {
 public:
  KubernetesPlace(std::shared_ptr<Site> site, base::SayWaiting waiting)
      : site_(std::move(site)), say_waiting_(std::move(waiting)) {}
  Result<std::unique_ptr<PublishedName>> publish(const std::string& name, const std::string& value,
                                                 Deadline until) override;
  Result<std::string> find(const std::string& name, Deadline until, const StopFlag& stop) override;

 private:
  Result<std::string> find(const std::string& name, Wait& wait);

  const std::shared_ptr<Site> site_;
  const base::SayWaiting say_waiting_;
  const std::shared_ptr<Pace> pace_ = std::make_shared<Pace>();
};

Result<std::unique_ptr<PublishedName>> KubernetesPlace::publish(const std::string& name,
                                                                const std::string& value,
                                                                Deadline until) {
  const std::string operation = fmt::format("publish \"{}\"", name);
  VIADUCT_CHECK(checkEntry(operation, name, value));
  const auto end = endOf(until);
  base::Waiting aloud(say_waiting_, end);
  const Wait wait{.until = end,
                  .operation = operation,
                  .missing = site_->text() + " has not said that the name is free",
                  .aloud = &aloud};
  return HeldLease::make(site_, pace_, name, value, wait);
}

Result<std::string> KubernetesPlace::find(const std::string& name, Deadline until,
                                          const StopFlag& stop) {
  const std::string operation = fmt::format("find \"{}\"", name);
  VIADUCT_CHECK(checkEntry(operation, name));
  const auto end = endOf(until);
  base::Waiting aloud(say_waiting_, end);
  Wait wait{.until = end, .stop = &stop, .operation = operation, .aloud = &aloud};
  return find(name, wait);
}

// Reads the Lease itself each time, because a watch may lag behind a withdrawal.
Result<std::string> KubernetesPlace::find(const std::string& name, Wait& wait) {
  std::optional<Changes::Waiter> waiter;
  std::optional<Lease> unproven;  // looks dead, until it is renewed
  for (;;) {
    VIADUCT_TRY(Site::Reading there, site_->read(name, wait, *pace_));
    if (there.lease) {
      Lease& lease = *there.lease;
      const bool renewed = unproven && unproven->renewed != lease.renewed;
      if (renewed || looksAlive(lease, there.date)) return *std::move(lease.value);
      wait.missing = fmt::format("the agent {} has not renewed that name for {} s or more, at {}",
                                 lease.holder, timeOf(lease).count(), site_->text());
    } else {
      wait.missing = "no agent has published that name at " + site_->text();
    }
    if (!waiter) waiter.emplace(site_->changes(), labelOf(name));
    unproven = std::move(there.lease);
    VIADUCT_CHECK(waiter->wait(unproven ? unproven->version : "", false, wait));
  }
}

}  // namespace

Result<std::unique_ptr<MeetingPlace>> open(const PlaceOptions& options) {
  return open(options, kLeaseTime);
}

Result<std::unique_ptr<MeetingPlace>> open(const PlaceOptions& options,
                                           std::chrono::seconds least_lease) {
  VIADUCT_TRY(auto site, Site::of(options, least_lease));
  return std::unique_ptr<MeetingPlace>(
      std::make_unique<KubernetesPlace>(std::move(site), options.waiting));
}

}  // namespace viaduct::meet::kubernetes
