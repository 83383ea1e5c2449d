#include "meet/kubernetes/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/environment.h"
#include "base/net/address.h"
#include "meet/identity.h"
#include "meet/kubernetes/holder.h"
#include "meet/kubernetes/names.h"
#include "meet/shared.h"

namespace viaduct::meet::kubernetes {
namespace {

using std::chrono::seconds;

Status check(const PlaceOptions& options) {
  if (options.user.empty() && options.password.empty() && options.certificate_file.empty() &&
      options.key_file.empty())
    return Ok{};
  return Error{.operation = "kubernetes",
               .detail = "a user, a password or a client's certificate was given",
               .cause = "these settings belong to etcd",
               .remedy =
                   "unset them: credentials come from the pod's service account, or from "
                   "KUBECONFIG"};
}

// Whether the Lease was renewed in time. `now`: the server's clock.
bool looksAlive(const Lease& lease, std::optional<WallTime> now) {
  // The server's clock comes in whole seconds, and two API servers may differ a little.
  constexpr seconds kApart{3};
  if (!now || !lease.renewed) return false;
  const auto age = *now - *lease.renewed;
  return age >= -kApart && age <= timeOf(lease);
}

}  // namespace

Result<std::shared_ptr<Site>> Site::of(const PlaceOptions& options, seconds least_lease) {
  static Shared<Site> sites;
  VIADUCT_TRY(const PlaceName place, parsePlaceName(options.where));
  VIADUCT_CHECK(check(options));
  VIADUCT_TRY(Access access, findAccess());
  if (!place.kube_namespace.empty()) access.kube_namespace = place.kube_namespace;
  if (!options.ca_file.empty()) {
    access.tls.ca_file = options.ca_file;
    access.tls.ca_pem.clear();
  }
  const std::string label = groupLabel(options.name_space, place.group);
  const auto lease = std::max(least_lease, std::chrono::ceil<seconds>(options.detect));
  const auto make = [&]() -> Result<std::shared_ptr<Site>> {
    VIADUCT_TRY(auto client, Client::open(access));
    return std::make_shared<Site>(std::move(client), place.group, label, lease);
  };
  return sites.get(
      fmt::format("{} {} {} {} {} {} {}", access.server, access.kube_namespace, access.origin,
                  access.token, access.tls.ca_file, label, lease.count()),
      make);
}

Site::Site(std::shared_ptr<Client> client, std::string group, std::string group_label,
           seconds lease)
    : client_(std::move(client)),
      group_label_(std::move(group_label)),
      text_(fmt::format("{}, namespace {}, group {}", client_->text(),
                        client_->access().kube_namespace, group)),
      lease_(lease),
      changes_(client_, group_label_) {
  // Names no owner in another namespace, because Kubernetes would then delete the Lease.
  if (base::variableText("POD_NAMESPACE") != client_->access().kube_namespace) return;
  pod_name_ = base::variableText("POD_NAME");
  pod_uid_ = base::variableText("POD_UID");
  if (pod_name_.empty() || pod_uid_.empty()) pod_name_ = pod_uid_ = "";
}

Lease Site::leaseOf(const LeaseTitle& title) const {
  return {.name = leaseName(group_label_, title.label),
          .kube_namespace = client_->access().kube_namespace,
          .group_label = group_label_,
          .name_label = title.label,
          .pod_name = pod_name_,
          .pod_uid = pod_uid_,
          .agent = title.agent,
          .identity = ownIdentity(),
          .seconds = static_cast<std::uint32_t>(lease_.count())};
}

Result<Site::Reading> Site::read(const LeaseTitle& title, const Wait& wait, Pace& pace) {
  const std::string object = leaseName(group_label_, title.label);
  VIADUCT_TRY(const Answer answer, client_->call({.name = object}, wait, pace));
  Reading out;
  if (answer.status != 200) return out;
  VIADUCT_TRY(Lease lease, answerOf(client_->text(), wait, parseLease(answer.body)));
  const bool ours = lease.agent == title.agent;
  if (ours && lease.value) {
    out.lease = std::move(lease);
    judge(out, answer.date);
    return out;
  }
  return Error{.code = Code::kProtocol,
               .operation = wait.operation,
               .detail = fmt::format("the Lease {} of {} holds foreign data", object, text_),
               .cause = ours ? "its value is cut off, or another version wrote it"
                             : "another program wrote it",
               .remedy = fmt::format("if no agent needs it: kubectl delete lease -n {} {}",
                                     client_->access().kube_namespace, object)};
}

// A holder is dead if it has not renewed the Lease for the Lease's time by our own clock. If the
// clocks of the writer and of the server are far apart, only a renewal shows that the holder lives.
void Site::judge(Reading& reading, std::optional<WallTime> date) {
  const Lease& lease = *reading.lease;
  if (isProvablyDead(lease.identity) || isGivenUp(lease.holder)) return;
  const auto now = Clock::now();
  watched_.with([&](auto& watched) {
    const auto [at, first] =
        watched.try_emplace(lease.name, Watched{.renewed = lease.renewed, .since = now});
    Watched& seen = at->second;
    // Between two looks that are far apart, the holder may have renewed the Lease and died.
    if (!first && seen.renewed != lease.renewed)
      seen = {.renewed = lease.renewed, .since = now, .lives = now - seen.read <= timeOf(lease)};
    seen.read = now;
    reading.dead_at = seen.since + timeOf(lease);
    const bool dead = now >= reading.dead_at;
    if (looksAlive(lease, date) || (seen.lives && !dead)) {
      reading.life = Life::kLives;
      reading.dead_at = std::max(reading.dead_at, now + seconds(1));
    } else if (!dead) {
      reading.life = Life::kUnknown;
    }
  });
}

seconds timeOf(const Lease& lease) { return seconds(std::clamp(lease.seconds, 1U, 60U)); }

}  // namespace viaduct::meet::kubernetes
