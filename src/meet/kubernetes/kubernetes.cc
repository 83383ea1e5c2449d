#include "meet/kubernetes/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "meet/identity.h"
#include "meet/kubernetes/held_lease.h"
#include "meet/kubernetes/holder.h"
#include "meet/kubernetes/names.h"
#include "meet/kubernetes/site.h"
#include "meet/stored_place.h"

namespace viaduct::meet::kubernetes {
namespace {

// A dead holder's name looks taken for the time of its Lease, at most this long: see timeOf().
constexpr std::chrono::seconds kLongestLease{60};

class KubernetesPlace final : public StoredPlace {
 public:
  KubernetesPlace(std::shared_ptr<Site> site, base::SayWaiting waiting)
      : StoredPlace(site->text(), Taken::kLives, kLongestLease, std::move(waiting)),
        site_(std::move(site)) {}
  Result<std::unique_ptr<PublishedName>> claim(const Claim& claim, const Wait& wait) override {
    return HeldLease::make(site_, pace_, titleOf(kNames, claim.key), claim, wait);
  }

 protected:
  Result<std::optional<Entry>> awaitEntry(const std::string& key, const EnoughEntry& enough,
                                          const Wait& wait) override;

 private:
  const std::shared_ptr<Site> site_;
  const std::shared_ptr<Pace> pace_ = std::make_shared<Pace>();
};

Entry entryOf(Lease lease) {
  const bool own = isOwnHolder(lease.holder);
  return {.identity = own ? ownIdentity() : std::string(),
          .value = *std::move(lease.value),
          .owner = std::move(lease.holder)};
}

// The wait for a change of the read Lease. It ends once the holder is dead without a change.
Wait waitFrom(const Site::Reading& there, const Wait& wait, const std::string& site) {
  using Life = Site::Life;
  Wait out = wait;
  if (!there.lease) return out;
  if (there.life != Life::kDead) out.until = std::min<Clock::time_point>(there.dead_at, wait.until);
  if (there.life != Life::kLives)
    out.missing = fmt::format("the agent {} has not renewed that name for {} s or more, at {}",
                              there.lease->holder, timeOf(*there.lease).count(), site);
  return out;
}

// Reads the Lease itself each time, because a watch may lag behind a withdrawal.
Result<std::optional<Entry>> KubernetesPlace::awaitEntry(const std::string& key,
                                                         const EnoughEntry& enough,
                                                         const Wait& wait) {
  using Life = Site::Life;
  const LeaseTitle title = titleOf(kNames, key);
  std::optional<Changes::Waiter> waiter;
  for (;;) {
    VIADUCT_TRY(Site::Reading there, site_->read(title, wait, *pace_));
    const Wait until_change = waitFrom(there, wait, site_->text());
    const std::string version = there.lease ? there.lease->version : "";
    std::optional<Entry> entry;
    if (there.life == Life::kLives) entry = entryOf(*std::move(there.lease));
    if (there.life != Life::kUnknown && enough(entry)) return entry;
    if (!waiter) waiter.emplace(site_->changes(), title.label);
    const Status changed = waiter->wait(version, true, until_change);
    if (!changed && (changed.error().code != Code::kTimeout || Clock::now() >= wait.until))
      return changed.error();
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
