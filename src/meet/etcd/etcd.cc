// Opens a meeting place at an etcd cluster, version 3, through its JSON gateway.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"
#include "meet/etcd/client.h"
#include "meet/etcd/keeper.h"
#include "meet/identity.h"
#include "meet/place_options.h"
#include "meet/shared.h"
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

std::chrono::seconds leaseTime(std::chrono::milliseconds detect) {
  // The minimum that etcd enforces with its default election timeout.
  constexpr std::chrono::seconds kLeast{2};
  return std::max(kLeast, std::chrono::ceil<std::chrono::seconds>(detect));
}

// A published entry. The destructor removes the entry from etcd.
class EtcdName final : public PublishedName {
 public:
  EtcdName(std::shared_ptr<Keeper> keeper, Keeper::KeyPtr key)
      : keeper_(std::move(keeper)), key_(std::move(key)) {}
  // NOLINTNEXTLINE(bugprone-exception-escape): gateway.cc's writer of JSON replaces bad text
  ~EtcdName() override { keeper_->remove(key_); }
  EtcdName(const EtcdName&) = delete;
  EtcdName& operator=(const EtcdName&) = delete;
  void withdrawSoon() override { keeper_->removeSoon(key_); }

 private:
  const std::shared_ptr<Keeper> keeper_;
  const Keeper::KeyPtr key_;
};

// Removes keys of dead processes.
class OthersKeys {
 public:
  // Whether the process that created the key is provably dead, and takeAway() has not been tried.
  bool mayTakeAway(const KeyValue& kv) const {
    if (kv.created == tried_ || kv.lease == 0) return false;
    const auto entry = decodeRecord<Entry>(kv.value);
    return entry && isProvablyDead(entry->identity);
  }
  // Revokes the lease of a dead process, once for each creation of the key. The key may still exist
  // afterwards.
  void takeAway(Client& client, const KeyValue& kv, const Wait& wait) {
    tried_ = kv.created;
    static_cast<void>(client.call(kRevokePath, leaseJson(kv.lease), wait));
  }

 private:
  Revision tried_ = 0;
};

class EtcdPlace final : public StoredPlace {
 public:
  EtcdPlace(std::shared_ptr<Client> client, std::shared_ptr<Keeper> keeper, std::string root,
            std::chrono::seconds lease_time, base::SayWaiting say)
      : StoredPlace(client->text(), Taken::kMayBeDead, lease_time + kExpiry, std::move(say)),
        client_(std::move(client)),
        keeper_(std::move(keeper)),
        root_(std::move(root)) {}
  Result<std::unique_ptr<PublishedName>> claim(const Claim& claim, const Wait& wait) override;
  void closeIdle() override { client_->closeIdle(); }

 protected:
  Result<std::optional<Entry>> awaitEntry(const std::string& key, const EnoughEntry& enough,
                                          const Wait& wait) override;

 private:
  const std::shared_ptr<Client> client_;
  const std::shared_ptr<Keeper> keeper_;
  const std::string root_;  // prefix of all keys
};

Result<std::unique_ptr<PublishedName>> EtcdPlace::claim(const Claim& claim, const Wait& wait) {
  auto key = std::make_shared<const KeptKey>(
      KeptKey{.key = fmt::format("{}/{}", root_, claim.key),
              .record = encodeRecord(Entry{ownIdentity(), claim.value}),
              .lost = claim.lost});
  VIADUCT_TRY(const bool ours, keeper_->create(key, wait));
  if (!ours) return std::unique_ptr<PublishedName>();
  return std::unique_ptr<PublishedName>(std::make_unique<EtcdName>(keeper_, std::move(key)));
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
  static Shared<Client> clients;
  static Shared<Keeper> keepers;
  const std::string access =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", options.where, options.user, options.password,
                  options.ca_file, options.certificate_file, options.key_file);
  VIADUCT_TRY(auto client, clients.get(access, [&] {
    return Client::open({.endpoints = std::move(endpoints),
                         .user = options.user,
                         .password = options.password,
                         .tls = {.ca_file = options.ca_file,
                                 .certificate_file = options.certificate_file,
                                 .key_file = options.key_file}});
  }));
  const std::string root = rootOf(options);
  const auto time = leaseTime(options.detect);
  VIADUCT_TRY(auto keeper, keepers.get(fmt::format("{}\n{}\n{}", access, root, time.count()), [&] {
    return Result<std::shared_ptr<Keeper>>(std::make_shared<Keeper>(client, root, time));
  }));
  return std::unique_ptr<MeetingPlace>(std::make_unique<EtcdPlace>(
      std::move(client), std::move(keeper), root, time, options.waiting));
}

}  // namespace viaduct::meet::etcd
