// Opens a meeting place at an etcd cluster, version 3, through its JSON gateway.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"
#include "meet/etcd/client.h"
#include "meet/etcd/held_key.h"
#include "meet/place_options.h"
#include "meet/stored_place.h"

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

class EtcdPlace final : public StoredPlace {
 public:
  EtcdPlace(std::shared_ptr<Client> client, std::string root, std::chrono::milliseconds detect,
            base::SayWaiting say)
      : StoredPlace(client->text(), Taken::kMayBeDead, Lease::timeOf(detect) + kExpiry,
                    std::move(say)),
        client_(std::move(client)),
        root_(std::move(root)),
        detect_(detect) {}
  Result<std::unique_ptr<PublishedName>> claim(const Claim& claim, const Wait& wait) override;
  void closeIdle() override { client_->closeIdle(); }

 protected:
  Result<std::optional<Entry>> awaitEntry(const std::string& key, const EnoughEntry& enough,
                                          const Wait& wait) override;

 private:
  const std::shared_ptr<Client> client_;
  const std::string root_;  // prefix of all keys
  const std::chrono::milliseconds detect_;
};

Result<std::unique_ptr<PublishedName>> EtcdPlace::claim(const Claim& claim, const Wait& wait) {
  VIADUCT_TRY(auto key, HeldKey::make(client_,
                                      {.key = fmt::format("{}/{}", root_, claim.key),
                                       .value = claim.value,
                                       .detect = detect_,
                                       .lost = claim.lost},
                                      wait));
  return std::unique_ptr<PublishedName>(std::move(key));
}

Result<std::optional<Entry>> EtcdPlace::awaitEntry(const std::string& key,
                                                   const EnoughEntry& enough, const Wait& wait) {
  const std::string whole = fmt::format("{}/{}", root_, key);
  OthersKeys others;
  for (;;) {
    std::optional<Entry> entry;
    bool foreign = false, dead = false;
    VIADUCT_TRY(const auto held, client_->await(whole, wait, [&](const Client::Held& there) {
      entry = there ? decodeRecord<Entry>(there->value) : std::nullopt;
      foreign = there && !entry;
      dead = there && others.mayTakeAway(*there);
      return foreign || dead || enough(entry);
    }));
    if (foreign) return foreignData(wait.operation, whole);
    if (!dead) return entry;
    others.takeAway(*client_, *held, wait);
  }
}

}  // namespace

Result<std::unique_ptr<MeetingPlace>> open(const PlaceOptions& options) {
  VIADUCT_TRY(auto endpoints, parseEndpoints(options.where));
  VIADUCT_CHECK(check(options, endpoints));
  VIADUCT_TRY(auto client, Client::open({.endpoints = std::move(endpoints),
                                         .user = options.user,
                                         .password = options.password,
                                         .tls = {.ca_file = options.ca_file,
                                                 .certificate_file = options.certificate_file,
                                                 .key_file = options.key_file}}));
  return std::unique_ptr<MeetingPlace>(std::make_unique<EtcdPlace>(
      std::move(client), rootOf(options), options.detect, options.waiting));
}

}  // namespace viaduct::meet::etcd
