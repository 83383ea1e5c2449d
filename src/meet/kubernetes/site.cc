#include "meet/kubernetes/site.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/environment.h"
#include "base/net/address.h"
#include "base/printable.h"
#include "base/random.h"
#include "meet/kubernetes/names.h"
#include "meet/shared.h"

namespace viaduct::meet::kubernetes {
namespace {

using std::chrono::seconds;

std::string variableText(const char* name) {
  const char* const value = base::variable(name);
  return value == nullptr ? "" : value;
}

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
  // Kubernetes deletes an object whose owner is in another namespace.
  if (variableText("POD_NAMESPACE") != client_->access().kube_namespace) return;
  pod_name_ = variableText("POD_NAME");
  pod_uid_ = variableText("POD_UID");
  if (pod_name_.empty() || pod_uid_.empty()) pod_name_ = pod_uid_ = "";
}

Lease Site::leaseOf(const std::string& name) const {
  const std::string label = labelOf(name);
  return {.name = leaseName(group_label_, label),
          .kube_namespace = client_->access().kube_namespace,
          .group_label = group_label_,
          .name_label = label,
          .pod_name = pod_name_,
          .pod_uid = pod_uid_,
          .agent = name,
          .seconds = static_cast<std::uint32_t>(lease_.count())};
}

Result<Site::Reading> Site::read(const std::string& name, const Wait& wait, Pace& pace) {
  const std::string object = leaseName(group_label_, labelOf(name));
  VIADUCT_TRY(const Answer answer, client_->call({.name = object}, wait, pace));
  if (answer.status != 200) return Reading{.date = answer.date};
  VIADUCT_TRY(Lease lease, parseLease(answer.body));
  if (lease.agent == name && lease.value)
    return Reading{.lease = std::move(lease), .date = answer.date};
  return Error{.code = Code::kProtocol,
               .operation = wait.operation,
               .detail = fmt::format("the Lease {} of {} holds foreign data", object, text_),
               .cause = lease.agent == name ? "its value is cut off, or another version wrote it"
                                            : "another program wrote it",
               .remedy = fmt::format("if no agent needs it: kubectl delete lease -n {} {}",
                                     client_->access().kube_namespace, object)};
}

bool looksAlive(const Lease& lease, std::optional<WallTime> now) {
  // The server's clock comes in whole seconds, and two API servers may differ a little.
  constexpr seconds kApart{3};
  if (!now || !lease.renewed) return false;
  const auto age = *now - *lease.renewed;
  return age >= -kApart && age <= timeOf(lease);
}

seconds timeOf(const Lease& lease) { return seconds(std::clamp(lease.seconds, 1U, 60U)); }

std::string ownProcess() {
  static const std::uint64_t random = [] {
    const auto number = base::secretNumber();
    return number ? *number : 0;
  }();
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}_{}_{:016x}", base::printable(host.data()), ::getpid(), random);
}

}  // namespace viaduct::meet::kubernetes
