#include "meet/etcd/directory.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "base/log.h"
#include "meet/etcd/identity.h"
#include "meet/etcd/watch.h"

namespace viaduct::meet::etcd {
namespace {

using std::chrono::milliseconds;

// How long after its lease's time etcd takes to see that a lease has run out.
constexpr milliseconds kExpiry{1000};
constexpr milliseconds kReclaim{1000};
constexpr milliseconds kWithdraw{1000};

// What a caller's thread waits for.
struct Outcome {
  Board board;
  std::optional<Result<std::string>> result = {};
  std::optional<Error> so_far = {};  // why there is no result, once somebody has asked

  void set(Result<std::string> value) {
    board.change([&] {
      if (!result) result = std::move(value);
    });
  }
  std::optional<Result<std::string>> wait(Clock::time_point until, const StopFlag* stop) {
    board.wait(until, stop, [this] { return result.has_value(); });
    return board.look([this] { return result; });
  }
};

// Lives in the loop: claims a name, and claims it again when the lease was lost.
class Claim {
 public:
  Claim(EtcdContext& context, std::string name, std::string value, Clock::time_point until)
      : context_(context),
        name_(std::move(name)),
        key_(context.space().entry(name_)),
        withdrawn_key_(context.space().withdrawn(uniqueNumber())),
        value_(encode(EntryMessage{ownIdentity(), std::move(value)})),
        until_(until) {}
  ~Claim() {
    context_.loop().forget(timer_);
    context_.lease().forgetLoss(loss_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  Outcome outcome;

  void begin() {
    context_.lease().want(until_, [this, weak = std::weak_ptr(alive_)](Result<LeaseId> lease) {
      if (weak.expired()) return;
      if (!lease) return end(std::move(lease).error());
      asked_ = true;
      const Txn txn{.when = {{key_}, {withdrawn_key_}},
                    .then = {TxnOp::put(key_, value_, *lease)},
                    .otherwise = {TxnOp::get({key_, {}})}};
      send(txn, [this, lease = *lease](Result<TxnReply> reply) { asked(lease, std::move(reply)); });
    });
  }

  // Our last act: `done` runs when the entry is gone, or etcd does not answer.
  void withdraw(std::function<void()> done) {
    if (created_ != 0) return erase(context_, key_, created_, std::move(done));
    const LeaseId lease = context_.lease().id();
    if (!asked_ || lease == 0) return done();
    // Whether the entry is there is not known, and it may yet come.
    context_.txn({.then = {TxnOp::put(withdrawn_key_, {}, lease), TxnOp::get({key_, {}})}},
                 context_.patience(),
                 [&context = context_, lease, key = key_, value = value_,
                  done = std::move(done)](const Result<TxnReply>& reply) {
                   if (!reply || reply->found.empty()) return done();
                   const KeyValue& kv = reply->found[0];
                   if (kv.lease != lease || kv.value != value) return done();
                   erase(context, key, kv.created, done);
                 });
  }

 private:
  static void erase(EtcdContext& context, const std::string& key, Revision created,
                    std::function<void()> done) {
    context.txn(
        {.when = {{key, Compare::What::kCreatedAt, created}}, .then = {TxnOp::erase({key, {}})}},
        context.patience(), [done = std::move(done)](const auto&) { done(); });
  }

  void send(const Txn& txn, std::function<void(Result<TxnReply>)> done) {
    context_.txn(txn, until_,
                 [done = std::move(done), weak = std::weak_ptr(alive_)](Result<TxnReply> reply) {
                   if (!weak.expired()) done(std::move(reply));
                 });
  }

  void asked(LeaseId lease, Result<TxnReply> reply) {
    if (!reply) return end(std::move(reply).error());
    asked_ = false;
    if (reply->succeeded) return claimed(reply->revision);
    if (reply->found.empty()) return begin();
    const KeyValue& kv = reply->found[0];
    // The second case: an answer was lost, and what was sent again met itself.
    if (kv.lease == lease && kv.value == value_ && created_ == 0 && !taken_seen_)
      return claimed(kv.created);
    const auto entry = decodeEntry(kv.value);
    if (kv.lease == lease) return taken("this process");
    if (entry && kv.lease != 0 && kv.created != proven_dead_ && isProvablyDead(entry->identity)) {
      proven_dead_ = kv.created;
      context_.client().call(kRevokePath, leaseJson(kv.lease), until_,
                             [this, weak = std::weak_ptr(alive_)](const Result<std::string>&) {
                               if (!weak.expired()) begin();
                             });
      return;
    }
    waitForExpiry(reply->revision + 1);
  }

  // Whoever is alive keeps its lease alive; a dead one's entry goes within its lease's time.
  void waitForExpiry(Revision from) {
    taken_seen_ = true;
    if (context_.loop().forget(std::exchange(timer_, 0)); given_up_at_ == Clock::time_point{})
      given_up_at_ = std::min(until_, Clock::now() + context_.lease().timeToLive() + kExpiry);
    timer_ = context_.loop().at(given_up_at_, [this] {
      timer_ = 0;
      watch_.reset();
      taken("another process");
    });
    watch_ = std::make_unique<Watch>(
        context_.loop(), context_.client(), std::vector<KeyRange>{{key_, {}}}, from,
        Watch::Handlers{.event =
                            [this](const WatchEvent& event) {
                              if (event.deleted) retry();
                            },
                        .snapshot =
                            [this](const std::vector<KeyValue>& all) {
                              if (all.empty()) retry();
                            },
                        .failed = [this](Error why) { end(std::move(why)); }});
  }

  void retry() {
    watch_.reset();
    begin();
  }

  void taken(std::string_view by) {
    end(Error{.code = Code::kBusy,
              .operation = fmt::format("publish \"{}\"", name_),
              .detail = fmt::format("the name belongs to {}", by),
              .remedy = "use another name, or another namespace"});
  }

  void claimed(Revision created) {
    created_ = created;
    context_.loop().forget(std::exchange(timer_, 0));
    watch_.reset();
    if (loss_ == 0)
      loss_ = context_.lease().onLoss([this](const Error& why) {
        base::log(base::LogLevel::kWarning, "the name {} is published again: {}", name_,
                  why.text());
        reclaim();
      });
    outcome.set(std::string());
  }

  // etcd was out of reach for longer than the lease, and back.
  void reclaim() {
    created_ = 0;
    given_up_at_ = {};
    until_ = context_.patience();
    begin();
  }

  void end(Error why) {
    watch_.reset();
    context_.loop().forget(std::exchange(timer_, 0));
    if (loss_ == 0) return outcome.set(std::move(why));
    timer_ = context_.loop().at(Clock::now() + kReclaim, [this] {
      timer_ = 0;
      reclaim();
    });
  }

  EtcdContext& context_;
  const std::string name_, key_, withdrawn_key_, value_;
  Clock::time_point until_, given_up_at_ = {};
  Revision created_ = 0, proven_dead_ = 0;
  bool asked_ = false;  // and not answered
  bool taken_seen_ = false;
  std::unique_ptr<Watch> watch_;
  CurlLoop::Id timer_ = 0, loss_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Ends a claim where it lives. Who looks for the name afterwards does not find it, unless etcd
// takes longer than we wait.
void release(EtcdContext& context, std::unique_ptr<Claim> claim) {
  auto done = std::make_shared<std::promise<void>>();
  auto gone = done->get_future();
  context.run([&] {
    claim->withdraw([done] { done->set_value(); });
    claim.reset();
  });
  gone.wait_for(kWithdraw);
}

class EtcdName final : public PublishedName {
 public:
  EtcdName(std::shared_ptr<EtcdContext> context, std::unique_ptr<Claim> claim)
      : context_(std::move(context)), claim_(std::move(claim)) {}
  ~EtcdName() override { release(*context_, std::move(claim_)); }
  EtcdName(const EtcdName&) = delete;
  EtcdName& operator=(const EtcdName&) = delete;

 private:
  std::shared_ptr<EtcdContext> context_;
  std::unique_ptr<Claim> claim_;
};

// Lives in the loop: waits for a name.
class Finding {
 public:
  Finding(EtcdContext& context, const std::string& name, Clock::time_point until)
      : context_(context), key_(context.space().entry(name)), until_(until) {}
  Finding(const Finding&) = delete;
  Finding& operator=(const Finding&) = delete;
  ~Finding() = default;

  Outcome outcome;

  bool asked() const { return watch_ != nullptr; }  // etcd has answered that it is not there
  void begin() {
    context_.txn({.then = {TxnOp::get({key_, {}})}}, until_,
                 [this, weak = std::weak_ptr(alive_)](Result<TxnReply> reply) {
                   if (weak.expired()) return;
                   if (!reply) return outcome.set(std::move(reply).error());
                   if (!reply->found.empty()) return found(reply->found[0]);
                   watch(reply->revision + 1);
                 });
  }

 private:
  void watch(Revision from) {
    watch_ = std::make_unique<Watch>(
        context_.loop(), context_.client(), std::vector<KeyRange>{{key_, {}}}, from,
        Watch::Handlers{.event =
                            [this](const WatchEvent& event) {
                              if (!event.deleted) found(event.kv);
                            },
                        .snapshot =
                            [this](const std::vector<KeyValue>& all) {
                              if (!all.empty()) found(all[0]);
                            },
                        .failed = [this](Error why) { outcome.set(std::move(why)); }});
  }

  void found(const KeyValue& kv) {
    auto entry = decodeEntry(kv.value);
    if (entry) return outcome.set(std::move(entry->value));
    outcome.set(Error{.code = Code::kProtocol,
                      .detail = fmt::format("the key {} holds foreign data", key_),
                      .cause = "another version of this program, or another program, wrote it"});
  }

  EtcdContext& context_;
  const std::string key_;
  const Clock::time_point until_;
  std::unique_ptr<Watch> watch_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// `missing`: what the wait is for, while etcd answers.
std::optional<Result<std::string>> await(EtcdContext& context, Outcome& outcome,
                                         const Error& missing, Clock::time_point until,
                                         const StopFlag& stop) {
  const auto known = [&outcome] { return outcome.result.has_value(); };
  waitAloud(context, outcome.board, outcome.so_far, until, stop, known,
            [&context, &outcome, missing] {
              Error why = context.client().trouble().value_or(missing);
              why.operation = missing.operation;
              outcome.board.change([&] { outcome.so_far = std::move(why); });
            });
  return outcome.board.look([&outcome] { return outcome.result; });
}

Status checkName(const std::string& operation, const std::string& name) {
  if (!name.empty() && name.size() <= kMaxNameBytes) return Ok{};
  return Error{.operation = operation,
               .detail = fmt::format("a name has 1 to {} bytes", kMaxNameBytes)};
}

}  // namespace

Result<std::unique_ptr<PublishedName>> publishName(std::shared_ptr<EtcdContext> context,
                                                   const std::string& name,
                                                   const std::string& value,
                                                   Clock::time_point until) {
  VIADUCT_CHECK(checkName("publish", name));
  const std::string operation = fmt::format("publish \"{}\"", name);
  if (value.size() > kMaxValueBytes)
    return Error{
        .operation = operation,
        .detail = fmt::format("a value has up to {} bytes, not {}", kMaxValueBytes, value.size())};
  auto claim = std::make_unique<Claim>(*context, name, value, until);
  context->loop().post([claim = claim.get()] { claim->begin(); });
  const StopFlag never{false};
  const auto result = await(
      *context, claim->outcome,
      {.operation = operation, .detail = context->text() + " has not said that the name is free"},
      until + kGrace, never);
  if (result && *result)
    return std::unique_ptr<PublishedName>(
        std::make_unique<EtcdName>(std::move(context), std::move(claim)));
  release(*context, std::move(claim));
  if (!result)
    return Error{.code = Code::kTimeout, .operation = operation, .detail = "etcd did not answer"};
  Error why = result->error();
  if (why.operation.starts_with("etcd")) why.operation = operation + ": " + why.operation;
  return why;
}

Result<std::string> findName(EtcdContext& context, const std::string& name, Clock::time_point until,
                             const StopFlag& stop) {
  VIADUCT_CHECK(checkName("find", name));
  const std::string operation = fmt::format("find \"{}\"", name);
  auto finding = std::make_unique<Finding>(context, name, until);
  context.loop().post([finding = finding.get()] { finding->begin(); });
  auto result = await(
      context, finding->outcome,
      {.operation = operation, .detail = "no agent has published that name at " + context.text()},
      until, stop);
  const bool stopped = stop.load(std::memory_order_relaxed);
  bool asked = false;
  context.run([&] { asked = finding->asked(); });
  // A call that failed has said so at its own deadline, which is ours, before that was run.
  if (!result && !stopped) result = finding->outcome.wait(until, &stop);
  context.run([&] { finding.reset(); });
  if (!result && stopped)
    return Error{.code = Code::kCancelled, .operation = operation, .detail = "asked to stop"};
  if (!result && !asked)
    return Error{.code = Code::kTimeout, .operation = operation, .detail = "etcd did not answer"};
  if (!result)
    return Error{.code = Code::kTimeout,
                 .operation = operation,
                 .detail = "no agent has published that name",
                 .cause = "its process has not started, has ended, or uses another namespace"};
  if (*result) return *result;
  Error why = result->error();
  why.operation = why.operation.empty() ? operation : operation + ": " + why.operation;
  return why;
}

}  // namespace viaduct::meet::etcd
