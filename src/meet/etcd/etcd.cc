#include "meet/etcd/etcd.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"
#include "meet/etcd/held_key.h"
#include "meet/etcd/identity.h"
#include "meet/etcd/records.h"

namespace viaduct::meet::etcd {
namespace {

// etcd removes the keys of a lease up to this long after the lease has expired.
constexpr std::chrono::seconds kExpiry{1};

Status readable(const std::string& file, const char* what) {
  if (file.empty()) return Ok{};
  const base::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return Ok{};
  return base::fileError(fmt::format("etcd: open {}", what), errno, file);
}

Status check(const PlaceOptions& options, const std::vector<EtcdEndpoint>& endpoints) {
  VIADUCT_CHECK(readable(options.ca_file, "the CA file"));
  VIADUCT_CHECK(readable(options.certificate_file, "the client's certificate"));
  VIADUCT_CHECK(readable(options.key_file, "the client's key"));
  if (options.certificate_file.empty() != options.key_file.empty())
    return Error{.operation = "etcd",
                 .detail = options.key_file.empty()
                               ? "a client certificate was given without its key"
                               : "a client key was given without its certificate",
                 .remedy = "give both files, or neither"};
  if (options.user.empty() && !options.password.empty())
    return Error{.operation = "etcd", .detail = "a password was given without a user"};
  const bool tls = std::ranges::any_of(endpoints, &EtcdEndpoint::tls);
  if (!tls && !(options.ca_file.empty() && options.certificate_file.empty()))
    return Error{.operation = "etcd",
                 .detail = "certificates were given, but no endpoint begins with https://",
                 .remedy = "write https:// before the endpoints, or omit the certificates"};
  return Ok{};
}

class EtcdPlace final : public MeetingPlace {
 public:
  explicit EtcdPlace(EtcdSite site) : site_(std::move(site)) {}
  Result<std::unique_ptr<PublishedName>> publish(const std::string& name, const std::string& value,
                                                 Deadline until) override;
  Result<std::string> find(const std::string& name, Deadline until, const StopFlag& stop) override;

 private:
  std::string keyOf(const std::string& name) const { return site_.root + "/name/" + escaped(name); }
  Status waitUntilFree(const std::string& key, const Wait& wait) const;

  const EtcdSite site_;
};

Result<std::unique_ptr<PublishedName>> EtcdPlace::publish(const std::string& name,
                                                          const std::string& value,
                                                          Deadline until) {
  const std::string operation = fmt::format("publish \"{}\"", name);
  VIADUCT_CHECK(checkEntry(operation, name, value));
  const auto end = clamped(until);
  base::Waiting aloud(site_.waiting, end);
  Wait wait{.until = end,
            .operation = operation,
            .missing = site_.client->text() + " has not said that the name is free",
            .aloud = &aloud};
  const HeldKey::Options wanted{.key = keyOf(name), .value = value, .detect = site_.detect};
  VIADUCT_TRY(auto key, HeldKey::make(site_.client, wanted, wait));
  // A living process renews its lease. A dead process's key vanishes within the lease's time, so
  // waiting longer is useless.
  wait.until = std::min(end, Clock::now() + Lease::timeOf(site_.detect) + kExpiry);
  while (!key) {
    VIADUCT_CHECK(waitUntilFree(wanted.key, wait));
    VIADUCT_TRY(key, HeldKey::make(site_.client, wanted, wait));
  }
  return std::unique_ptr<PublishedName>(std::move(key));
}

Status EtcdPlace::waitUntilFree(const std::string& key, const Wait& wait) const {
  const auto isOurs = [](const Client::Held& held) {
    const auto entry = decodeRecord<Entry>(held->value);
    return entry && !ownIdentity().empty() && entry->identity == ownIdentity();
  };
  OthersKeys others;
  const auto held = site_.client->await(key, wait, [&](const Client::Held& there) {
    return !there || isOurs(there) || OthersKeys::isDead(*there);
  });
  const bool etcd_failed = !held && held.error().operation != wait.operation;
  if (etcd_failed) return held.error();
  if (held && (!*held || others.takeAway(*site_.client, **held, wait))) return Ok{};
  return Error{.code = Code::kBusy,
               .operation = wait.operation,
               .detail = fmt::format("the name belongs to {}",
                                     held && isOurs(*held) ? "this process" : "another process"),
               .remedy = "use another name, or another namespace"};
}

Result<std::string> EtcdPlace::find(const std::string& name, Deadline until, const StopFlag& stop) {
  const std::string operation = fmt::format("find \"{}\"", name);
  VIADUCT_CHECK(checkEntry(operation, name));
  const auto end = clamped(until);
  base::Waiting aloud(site_.waiting, end);
  const Wait wait{.until = end,
                  .stop = &stop,
                  .operation = operation,
                  .missing = "no agent has published that name at " + site_.client->text(),
                  .aloud = &aloud};
  VIADUCT_TRY(const auto held,
              site_.client->await(keyOf(name), wait,
                                  [](const Client::Held& there) { return there.has_value(); }));
  auto entry = decodeRecord<Entry>(held->value);
  if (entry) return std::move(entry->value);
  return Error{.code = Code::kProtocol,
               .operation = wait.operation,
               .detail = fmt::format("the key {} holds foreign data", keyOf(name)),
               .cause = "another version of this program, or another program, wrote it"};
}

}  // namespace

Clock::time_point clamped(Deadline until) {
  return std::min(until.at(), Clock::now() + std::chrono::hours(24 * 365));
}

Result<EtcdSite> siteOf(const PlaceOptions& options) {
  VIADUCT_TRY(auto endpoints, parseEndpoints(options.where));
  VIADUCT_CHECK(check(options, endpoints));
  EtcdSite site{.root = options.name_space.empty() ? "/viaduct" : options.name_space,
                .token = options.token,
                .detect = options.detect,
                .waiting = options.waiting};
  while (site.root.ends_with('/')) site.root.pop_back();
  VIADUCT_TRY(site.client,
              Client::open({.endpoints = std::move(endpoints),
                            .user = options.user,
                            .password = options.password,
                            .tls = {options.ca_file, options.certificate_file, options.key_file}}));
  return site;
}

Result<std::unique_ptr<MeetingPlace>> open(const PlaceOptions& options) {
  VIADUCT_TRY(auto site, siteOf(options));
  return std::unique_ptr<MeetingPlace>(std::make_unique<EtcdPlace>(std::move(site)));
}

}  // namespace viaduct::meet::etcd
