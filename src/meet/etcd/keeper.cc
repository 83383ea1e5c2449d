#include "meet/etcd/keeper.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"
#include "base/log.h"
#include "base/random.h"

namespace viaduct::meet::etcd {
namespace {

using std::chrono::milliseconds;

// An etcd counts as lost after this much silence beyond the lease's time. That suffices for a
// restart and an election of etcd, and leases outlive both.
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::seconds kGoodbye{1}, kAgain{1};
constexpr milliseconds kLook{50};

Error lost(Error why) {
  why.code = Code::kPeerLost;
  why.operation = "etcd lease";
  return why;
}

Error expired(std::chrono::seconds time) {
  return lost({.detail = "the lease of this process has expired",
               .cause = fmt::format("this process was stopped, or could not reach etcd, for {} s",
                                    time.count())});
}

bool isExpiry(const Error& why) { return why.detail.find("lease not found") != std::string::npos; }

// True: etcd has answered that it did not carry out the request.
bool isRefusal(const Error& why) {
  return why.code == Code::kDenied || why.code == Code::kInvalid || why.code == Code::kExhausted;
}

// True: etcd may have carried out the request, or may do so later.
bool isUncertain(const Error& why) { return !isExpiry(why) && !isRefusal(why); }

// An earlier try, whose answer was lost, may have created the key with this lease.
bool isCreated(const CreateReply& reply, LeaseId lease) {
  return reply.created || (reply.found && reply.found->lease == lease);
}

}  // namespace

Keeper::~Keeper() {
  {
    const Lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<bool> Keeper::create(const KeyPtr& key, const Wait& wait) {
  {
    const Lock lock(mutex_);
    VIADUCT_CHECK(start());
    if (!keys_.emplace(key->key, Held{.key = key}).second) return false;
  }
  auto made = make(*key, wait);
  if (!made || !*made) removeNow(key);
  return made;
}

Result<bool> Keeper::make(const KeptKey& key, const Wait& wait) {
  VIADUCT_CHECK(undoGivenUp(key.key, wait));
  for (;;) {
    VIADUCT_TRY(const LeaseId id, lease(wait));
    GivenUp request{.key = key.key, .lease = id};
    {
      const Lock lock(mutex_);
      request.tombstone = fmt::format("{}/given-up/{:x}-{}", root_, id, ++tries_);
    }
    const auto reply = tryCreate(key, request, wait);
    const Lock lock(mutex_);
    if (reply) {
      const bool ours = isCreated(*reply, id);
      if (ours) keys_.at(key.key).lease = id;
      changed_.notify_all();  // the lease may have ended meanwhile
      return ours;
    }
    if (isUncertain(reply.error())) given_up_.push_back(std::move(request));
    if (!isExpiry(reply.error())) return reply.error();
    // The lease has expired before a slow etcd made the key. The next round takes a new lease.
    if (lease_ == id) lease_ = 0;
    changed_.notify_all();
    if (wait.stopped() || Clock::now() >= wait.until) return reply.error();
  }
}

Result<CreateReply> Keeper::tryCreate(const KeptKey& key, const GivenUp& request,
                                      const Wait& wait) {
  VIADUCT_TRY(
      const auto body,
      client_->call(kTxnPath, createJson(key.key, key.record, request.lease, request.tombstone),
                    wait));
  return answerOf(client_->text(), wait, parseCreate(body));
}

// Returns the lease, or grants one. Other calls wait for the grant.
Result<LeaseId> Keeper::lease(const Wait& wait) {
  Lock lock(mutex_);
  while (granting_) {
    if (wait.stopped()) return wait.cancelled();
    if (Clock::now() >= wait.until) return wait.timedOut();
    changed_.wait_for(lock, kLook);
  }
  if (lease_ != 0) return lease_;
  granting_ = true;
  lock.unlock();
  auto granted = grant(wait);
  lock.lock();
  granting_ = false;
  if (granted) {
    lease_ = *granted;
    kept_at_ = Clock::now();
    renew_at_ = kept_at_ + milliseconds(time_) / 3;
  }
  changed_.notify_all();
  return granted;
}

Result<LeaseId> Keeper::grant(const Wait& wait) {
  // We choose the id, so that a repeated grant after a lost answer is the same lease.
  VIADUCT_TRY(const std::uint64_t random, base::secretNumber());
  const auto id = static_cast<LeaseId>((random & INT64_MAX) | 1U);
  const auto body = client_->call(kGrantPath, grantJson(id, time_.count()), wait);
  if (body) {
    VIADUCT_CHECK(answerOf(client_->text(), wait, parseGrant(*body)));
  } else if (body.error().detail.find("lease already exists") == std::string::npos) {
    return body.error();
  }
  return id;
}

void Keeper::remove(const KeyPtr& key) {
  {
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return busy_ != key.get(); });
  }
  removeNow(key);
}

void Keeper::removeSoon(const KeyPtr& key) {
  {
    const Lock lock(mutex_);
    const auto at = keys_.find(key->key);
    if (at == keys_.end() || at->second.key != key) return;
    at->second.leaving = true;
  }
  changed_.notify_all();
}

// If this was the last key, ends the lease. That removes the key, and makes late requests fail.
void Keeper::removeNow(const KeyPtr& key) {
  LeaseId ended = 0;
  {
    const Lock lock(mutex_);
    const auto at = keys_.find(key->key);
    if (at == keys_.end() || at->second.key != key) return;
    if (at->second.lease != 0) given_up_.push_back({.key = key->key, .lease = at->second.lease});
    keys_.erase(at);
    if (keys_.empty()) ended = std::exchange(lease_, 0);
    std::erase_if(given_up_, [this](const GivenUp& one) { return one.lease != lease_; });
  }
  const Wait wait{.until = Clock::now() + kGoodbye};
  if (ended != 0)
    static_cast<void>(client_->call(kRevokePath, leaseJson(ended), wait));
  else
    static_cast<void>(undoGivenUp(key->key, wait));
}

Status Keeper::undo(const GivenUp& request, const Wait& wait) {
  const auto body =
      client_->call(kTxnPath, undoJson(request.key, request.lease, request.tombstone), wait);
  if (!body && !isExpiry(body.error())) return body.error();
  return Ok{};
}

// Undoes the given-up requests for `key`, or for all keys if `key` is empty.
Status Keeper::undoGivenUp(std::string_view key, const Wait& wait) {
  std::vector<GivenUp> chosen;
  {
    const Lock lock(mutex_);
    const auto others = std::partition(given_up_.begin(), given_up_.end(), [&](const auto& one) {
      return !key.empty() && one.key != key;
    });
    std::move(others, given_up_.end(), std::back_inserter(chosen));
    given_up_.erase(others, given_up_.end());
  }
  Status status = Ok{};
  for (GivenUp& one : chosen) {
    if (status) status = undo(one, wait);
    if (status) continue;
    const Lock lock(mutex_);
    if (one.lease == lease_) given_up_.push_back(std::move(one));
  }
  return status;
}

Status Keeper::start() {
  if (thread_.joinable()) return Ok{};
  const base::BlockedSignals blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return systemError(Code::kExhausted, "start etcd's thread", error.code().value());
  }
  return Ok{};
}

template <class Which>
std::vector<Keeper::KeyPtr> Keeper::keysThat(Which&& which) const {
  std::vector<KeyPtr> out;
  for (const auto& [name, held] : keys_)
    if (which(held)) out.push_back(held.key);
  return out;
}

// Runs `work` on a key without the lock. remove() waits for the end of `work`.
template <class F>
void Keeper::withBusy(Lock& lock, const KeyPtr& key, F&& work) {
  const auto at = keys_.find(key->key);
  if (at == keys_.end() || at->second.key != key) return;
  busy_ = key.get();
  lock.unlock();
  work();
  lock.lock();
  busy_ = nullptr;
  changed_.notify_all();
}

void Keeper::run() {
  pthread_setname_np(pthread_self(), "viaduct-etcd");
  Lock lock(mutex_);
  while (!stop_) {
    if (const auto next = nextTurn(); next == Clock::time_point::max()) {
      changed_.wait(lock);
      continue;
    } else if (next > Clock::now()) {
      changed_.wait_until(lock, next);
      continue;
    }
    for (const KeyPtr& key : keysThat([](const Held& held) { return held.leaving; }))
      withBusy(lock, key, [&] { removeNow(key); });
    if (lease_ != 0 && Clock::now() >= renew_at_) renew(lock);
    lose(lock, expired(time_), false);
    makeAgain(lock);
  }
}

Clock::time_point Keeper::nextTurn() const {
  auto next = lease_ == 0 ? Clock::time_point::max() : renew_at_;
  for (const auto& [name, held] : keys_) {
    if (held.leaving || (isStale(held) && held.key->lost)) return {};
    if (isStale(held)) next = std::min(next, again_at_);
  }
  return next;
}

void Keeper::renew(Lock& lock) {
  const LeaseId id = lease_;
  const auto begun = Clock::now();
  const auto until = std::max(begun + time_, kept_at_ + time_ + kPatience);
  lock.unlock();
  auto alive = keepAlive(id, until);
  if (alive && *alive) static_cast<void>(undoGivenUp({}, {.until = begun + time_, .stop = &stop_}));
  lock.lock();
  if (stop_ || lease_ != id) return;
  if (alive && *alive) {
    kept_at_ = begun;
    renew_at_ = begun + milliseconds(time_) / 3;
  } else if (alive) {
    lease_ = 0;
    again_at_ = {};
    const auto again = keysThat([](const Held& held) { return !held.key->lost; });
    if (!again.empty())
      base::log(base::LogLevel::kWarning, "{} keys are made again: {}", again.size(),
                expired(time_).text());
  } else {
    renew_at_ = Clock::now() + kAgain;
    lose(lock, lost(std::move(alive).error()), true);
  }
}

// A try may take a third of the lease's time, so that another endpoint is tried before the lease
// expires. False: the lease has expired.
Result<bool> Keeper::keepAlive(LeaseId id, Clock::time_point until) {
  VIADUCT_TRY(const std::string body,
              client_->call(kKeepAlivePath, leaseJson(id), {.until = until, .stop = &stop_},
                            milliseconds(time_) / 3));
  VIADUCT_TRY(const std::int64_t time, parseKeepAlive(body));
  return time > 0;
}

// Tells the owners of keys that may belong to another process by now: of all keys, or of those
// whose lease has ended.
void Keeper::lose(Lock& lock, const Error& why, bool all) {
  const auto keys = keysThat([&](const Held& held) {
    return held.key->lost && held.lease != 0 && (all || isStale(held));
  });
  for (const KeyPtr& key : keys) withBusy(lock, key, [&] { key->lost(why); });
  for (const KeyPtr& key : keys) withBusy(lock, key, [&] { removeNow(key); });
}

// Creates keys again whose lease was lost while etcd was out of reach or this process was stopped.
void Keeper::makeAgain(Lock& lock) {
  if (Clock::now() < again_at_) return;
  for (const KeyPtr& key : keysThat([this](const Held& held) { return isStale(held); })) {
    if (stop_ || (lease_ != 0 && Clock::now() >= renew_at_)) return;
    Result<bool> made = true;
    withBusy(lock, key, [&] {
      made = make(*key, {.until = Clock::now() + time_ + kPatience, .stop = &stop_});
    });
    if (!made || !*made) again_at_ = Clock::now() + kAgain;
    if (!made) return;
  }
}

}  // namespace viaduct::meet::etcd
