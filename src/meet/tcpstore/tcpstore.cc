// Opens a meeting place at a TCPStore of torch.distributed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/guarded.h"
#include "base/net/address.h"
#include "meet/identity.h"
#include "meet/place_options.h"
#include "meet/shared.h"
#include "meet/stored_place.h"
#include "meet/tcpstore/keeper.h"

namespace viaduct::meet::tcpstore {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kLeastLease{5};
constexpr std::uint16_t kUsualPort = 29500;
// A living owner answers in milliseconds. A reader without an answer waits for a change of owner,
// and then asks again. Each of these rounds is twice as long as the one before, because the store
// may be busy.
constexpr milliseconds kFirstPatience{250}, kLongestPatience{2000};
// A reader that waits for the end of a name asks again after this time.
constexpr milliseconds kAskAgain{1000};

// A published entry. The destructor withdraws the entry from the store.
class TcpStoreName final : public PublishedName {
 public:
  TcpStoreName(std::shared_ptr<Keeper> keeper, std::shared_ptr<KeptName> name)
      : keeper_(std::move(keeper)), name_(std::move(name)) {}
  ~TcpStoreName() override { keeper_->remove(name_); }
  TcpStoreName(const TcpStoreName&) = delete;
  TcpStoreName& operator=(const TcpStoreName&) = delete;
  void withdrawSoon() override {
    name_->withdraw_soon = true;
    keeper_->wake();
  }

 private:
  const std::shared_ptr<Keeper> keeper_;
  const std::shared_ptr<KeptName> name_;
};

class TcpStorePlace final : public StoredPlace {
 public:
  TcpStorePlace(std::shared_ptr<Client> client, std::string root, Duration lease,
                std::shared_ptr<Keeper> keeper, base::SayWaiting say)
      : StoredPlace(client->text(), Taken::kLives, 2 * lease, std::move(say)),
        client_(std::move(client)),
        root_(std::move(root)),
        lease_(lease),
        keeper_(std::move(keeper)) {}
  Result<std::unique_ptr<PublishedName>> claim(const Claim& claim, const Wait& wait) override;
  void closeIdle() override { client_->closeIdle(); }

 protected:
  Result<std::optional<Entry>> awaitEntry(const std::string& key, const EnoughEntry& enough,
                                          const Wait& wait) override;

 private:
  class Reading;
  bool isFree(const std::string& key, const std::string& record, const Head& head);

  const std::shared_ptr<Client> client_;
  const std::string root_;  // prefix of all keys
  const Duration lease_;
  const std::shared_ptr<Keeper> keeper_;
  // The heads whose owners have not answered for the time of a lease, by key.
  base::Guarded<std::map<std::string, std::string>> stale_;
};

// One wait for a key.
class TcpStorePlace::Reading {
 public:
  Reading(TcpStorePlace& place, const std::string& key, const EnoughEntry& enough, const Wait& wait)
      : place_(place), key_(place.root_ + "/" + key), enough_(enough), wait_(wait) {}

  Result<std::optional<Entry>> run();

 private:
  enum class State : std::uint8_t { kAbsent, kAlive, kStale, kUnknown };

  Result<State> read();  // reads and judges the head
  Result<State> judge(const std::string& record);
  Result<bool> ownerAnswers();
  Status waitForChange(State state);
  Clock::time_point patienceEnd() const;

  TcpStorePlace& place_;
  const std::string key_;
  const EnoughEntry& enough_;
  const Wait& wait_;
  Head head_;               // as it was read last; generation 0: none yet
  bool changed_ = false;    // the head was seen to change while this call waited for it
  std::string unanswered_;  // the owner that does not answer
  Clock::time_point unanswered_since_ = {};
  milliseconds patience_ = kFirstPatience;
};

Result<std::optional<Entry>> TcpStorePlace::Reading::run() {
  for (;;) {
    VIADUCT_TRY(const State state, read());
    const bool there = state == State::kAlive;
    if (state != State::kUnknown && enough_(there ? std::optional(head_.entry) : std::nullopt))
      return there ? std::optional(head_.entry) : std::nullopt;
    VIADUCT_CHECK(waitForChange(state));
    if (wait_.stopped()) return wait_.cancelled();
    if (Clock::now() >= wait_.until) return wait_.timedOut();
  }
}

Result<TcpStorePlace::Reading::State> TcpStorePlace::Reading::read() {
  VIADUCT_TRY(const auto found, place_.client_->read(key_, wait_));
  if (!found) {
    head_ = {};
    return State::kAbsent;
  }
  auto head = decodeRecord<Head>(*found);
  if (!head) return foreignData(wait_.operation, key_);
  changed_ = changed_ && head->generation > head_.generation;
  head_ = *std::move(head);
  return judge(*found);
}

// The owner of a head that changed during this call is alive. Any other owner has to answer now.
Result<TcpStorePlace::Reading::State> TcpStorePlace::Reading::judge(const std::string& record) {
  if (!head_.present) return State::kAbsent;
  if (changed_) return State::kAlive;
  if (head_.owner == place_.keeper_->owner())
    return place_.keeper_->keeps(key_) ? State::kAlive : State::kUnknown;
  if (isProvablyDead(head_.entry.identity)) return State::kStale;
  const auto asked = Clock::now();
  VIADUCT_TRY(const bool alive, ownerAnswers());
  if (alive) return State::kAlive;
  if (unanswered_ != head_.owner) {
    unanswered_ = head_.owner;
    unanswered_since_ = asked;
    patience_ = kFirstPatience;
  }
  patience_ = std::min(2 * patience_, kLongestPatience);
  if (Clock::now() - unanswered_since_ < place_.lease_) return State::kUnknown;
  place_.stale_.with([&](auto& stale) { stale[key_] = record; });
  return State::kStale;
}

Result<bool> TcpStorePlace::Reading::ownerAnswers() {
  const OwnerKeys keys = ownerKeys(place_.root_, head_.owner);
  VIADUCT_TRY(const auto beat, place_.client_->read(keys.beat, wait_));
  if (!beat) return false;
  const std::uint64_t n = std::strtoull(beat->c_str(), nullptr, 10);
  return place_.client_->awaitKey(keys.answer(n), patienceEnd(), wait_, keys.question(n));
}

// Ends a wait no later than the lease of a silent owner, so that its death is found at once.
Clock::time_point TcpStorePlace::Reading::patienceEnd() const {
  const auto now = Clock::now();
  const auto verdict = unanswered_since_ + place_.lease_;
  const bool pending = unanswered_ == head_.owner && verdict > now;
  return pending ? std::min(now + patience_, verdict) : now + kFirstPatience;
}

Status TcpStorePlace::Reading::waitForChange(State state) {
  const auto until = state == State::kAbsent    ? wait_.until
                     : state == State::kUnknown ? patienceEnd()
                                                : Clock::now() + kAskAgain;
  VIADUCT_TRY(changed_, place_.client_->awaitKey(changeKey(key_, head_.generation + 1),
                                                 std::min(until, wait_.until), wait_));
  return Ok{};
}

Result<std::optional<Entry>> TcpStorePlace::awaitEntry(const std::string& key,
                                                       const EnoughEntry& enough,
                                                       const Wait& wait) {
  return Reading(*this, key, enough, wait).run();
}

bool TcpStorePlace::isFree(const std::string& key, const std::string& record, const Head& head) {
  return !head.present || isProvablyDead(head.entry.identity) || stale_.with([&](auto& stale) {
    const auto at = stale.find(key);
    return at != stale.end() && at->second == record;
  });
}

Result<std::unique_ptr<PublishedName>> TcpStorePlace::claim(const Claim& claim, const Wait& wait) {
  const std::string key = root_ + "/" + claim.key;
  VIADUCT_TRY(const auto found, client_->read(key, wait));
  Head before;
  if (found) {
    auto head = decodeRecord<Head>(*found);
    if (!head) return foreignData(wait.operation, key);
    if (!isFree(key, *found, *head)) return std::unique_ptr<PublishedName>();
    before = *std::move(head);
  }
  VIADUCT_CHECK(keeper_->start(wait));
  const auto name = std::make_shared<KeptName>();
  name->key = key;
  name->lost = claim.lost;
  name->head = {.generation = before.generation + 1,
                .owner = keeper_->owner(),
                .present = true,
                .entry = {.identity = ownIdentity(), .value = claim.value}};
  const std::string record = encodeRecord(name->head);
  const auto now = client_->compareSet(key, found.value_or(""), record, wait);
  if (!now) {
    name->unsure_after = found.value_or("");
    keeper_->undo(name);
    return now.error();
  }
  if (*now != record) return std::unique_ptr<PublishedName>();
  stale_.with([&](auto& stale) { stale.erase(key); });
  keeper_->add(name);
  auto out = std::make_unique<TcpStoreName>(keeper_, name);
  VIADUCT_CHECK(client_->set(changeKey(key, before.generation + 1), "1", wait));
  return std::unique_ptr<PublishedName>(std::move(out));
}

}  // namespace

Result<std::unique_ptr<MeetingPlace>> open(const PlaceOptions& options) {
  auto where = base::parseHostPort(options.where, 0, options.where.size(), kUsualPort);
  if (!where || where->port == 0 || where->host == "*")
    return Error{
        .operation = "meeting place",
        .detail = fmt::format("\"tcpstore:{}\": {}", options.where,
                              where ? "members cannot reach this address" : where.error().detail),
        .remedy = "write tcpstore:HOST:PORT with torch.distributed's master"};
  std::string root = rootOf(options);
  if (!root.starts_with('/')) root.insert(0, "/");  // as torch begins all keys
  static Shared<Client> clients;
  static Shared<Keeper> keepers;
  const std::string store = base::hostPortText(where->host, where->port);
  const auto lease = std::max<Duration>(kLeastLease, options.detect);
  VIADUCT_TRY(auto client, clients.get(store, [&] {
    return Result<std::shared_ptr<Client>>(std::make_shared<Client>(store));
  }));
  VIADUCT_TRY(auto keeper, keepers.get(fmt::format("{} {} {}", store, lease.count(), root), [&] {
    return Result<std::shared_ptr<Keeper>>(std::make_shared<Keeper>(client, root, lease));
  }));
  return std::unique_ptr<MeetingPlace>(std::make_unique<TcpStorePlace>(
      std::move(client), std::move(root), lease, std::move(keeper), options.waiting));
}

}  // namespace viaduct::meet::tcpstore
