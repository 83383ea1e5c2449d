#include "meet/etcd/leading.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/random.h"
#include "meet/etcd/identity.h"

namespace viaduct::meet::etcd {
namespace {

// etcd takes 128 operations and 1.5 MiB in one transaction unless it was told otherwise.
constexpr std::size_t kMostOps = 100, kMostBytes = std::size_t{1024} * 1024;

}  // namespace

Leading::Leading(EtcdContext& context, LedGroup place, Leader leader, Hooks hooks)
    : context_(context),
      group_(std::move(place)),
      leader_(std::move(leader)),
      hooks_(std::move(hooks)) {}

void Leading::heard(const WatchEvent& event) {
  if (const auto here = group_.keys.answererOf(event.kv.key)) {
    const auto call = event.deleted ? std::nullopt : decodeCall(event.kv.value);
    if (call) leader_.answered(*here, call->number);
    return flush();
  }
  const auto id = group_.keys.memberOf(event.kv.key);
  if (!id) return;
  stuck_ = false;
  ++news_;
  if (event.deleted) {
    leader_.vanished(*id);
  } else if (const auto message = decodeUp(event.kv.value)) {
    leader_.said(*id, event.kv.lease, event.kv.modified, *message);
  }
  flush();
}

void Leading::reread(const std::vector<KeyValue>& all) {
  std::vector<const KeyValue*> ups;
  std::set<MemberId> there;
  for (const KeyValue& kv : all)
    if (group_.keys.up().holds(kv.key)) {
      ups.push_back(&kv);
      if (const auto id = group_.keys.memberOf(kv.key)) there.insert(*id);
    }
  std::ranges::sort(ups, {}, [](const KeyValue* kv) { return kv->modified; });
  for (const KeyValue* kv : ups) heard({.kv = *kv});
  for (const MemberId id : leader_.members())  // and of those who wait
    if (!there.contains(id)) leader_.vanished(id);
  flush();
}

void Leading::collect() {
  const LeaseId lease = context_.lease().id();
  Leader::LeaderOutput out = leader_.take();
  for (const auto& [id, answer] : out.answers)
    ops_.push_back(TxnOp::put(group_.keys.answer(id), encode(answer), lease));
  const auto broadcast = [&](std::uint64_t round, const std::string& bytes) {
    for (const PartMessage& part : cut(round, bytes))
      ops_.push_back(TxnOp::put(group_.keys.part(part.part), encode(part), lease));
  };
  if (out.roster) broadcast(0, encodeRoster(*out.roster));
  for (const auto& [round, bytes] : out.rounds) broadcast(round, bytes);
  if (out.call)
    ops_.push_back(TxnOp::put(group_.keys.call(), encode(CallMessage{*out.call}), lease));
  if (out.trouble) ops_.push_back(TxnOp::put(group_.keys.trouble(), encode(*out.trouble), lease));
}

void Leading::write(const Txn& txn, std::function<void(const TxnReply&)> done) {
  busy_ = true;
  context_.txn(
      txn, context_.patience(),
      [this, done = std::move(done), weak = std::weak_ptr(alive_)](Result<TxnReply> reply) {
        if (weak.expired()) return;
        busy_ = false;
        if (reply) return done(*reply);
        const auto failed = hooks_.failed;
        failed(std::move(reply).error());
      });
}

// One transaction at a time: what is decided meanwhile goes into the next one.
void Leading::flush() {
  collect();
  if (busy_) return;
  if (ops_.empty()) {
    if (leader_.saidGoodbye(group_.self) && !ended_ && !stuck_) handOver();
    return;
  }
  Txn txn;
  std::set<std::string> keys;
  std::size_t bytes = 0;
  // etcd refuses a transaction that writes a key twice.
  while (!ops_.empty() && txn.then.size() < kMostOps &&
         (txn.then.empty() || bytes + ops_.front().value.size() <= kMostBytes) &&
         keys.insert(ops_.front().range.key).second) {
    bytes += ops_.front().value.size();
    txn.then.push_back(std::move(ops_.front()));
    ops_.pop_front();
  }
  write(txn, [this](const TxnReply&) { flush(); });
}

// To any one who has not said goodbye, by chance: in the order of ranks, a group whose members all
// finish in that order would change its leader as often as it has members.
void Leading::handOver() {
  const auto heirs = leader_.heirs();
  if (heirs.empty()) return dissolve();
  base::Random random(static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()) ^
                      group_.self);
  const LeasedMember& heir = heirs[random.below(heirs.size())];
  const LeadMessage lead{.leader = heir.id,
                         .seen = leader_.seen(),
                         .rounds = leader_.roundsDone(),
                         .gone = leader_.gone()};
  const std::string key = group_.keys.up(heir.id);
  using What = Compare::What;
  // Not to one who says goodbye at this very moment.
  const Txn txn{.when = {{key, What::kCreatedAfter, 0}, {key, What::kModifiedUpTo, leader_.seen()}},
                .then = {TxnOp::put(group_.keys.head(),
                                    encode(GroupHead{.instance = group_.instance}), heir.lease),
                         TxnOp::put(group_.keys.lead(), encode(lead), heir.lease)}};
  busy_ = true;
  context_.txn(txn, context_.patience(),
               [this, news = news_, weak = std::weak_ptr(alive_)](Result<TxnReply> reply) {
                 if (weak.expired()) return;
                 busy_ = false;
                 if (!reply && reply.error().code != Code::kNotFound) {
                   const auto failed = hooks_.failed;
                   return failed(std::move(reply).error());
                 }
                 // Its lease is no more, or it has said something: we are about to hear of it, or
                 // have meanwhile.
                 if (!reply || !reply->succeeded) {
                   stuck_ = news == news_;
                   return flush();
                 }
                 ended_ = true;
                 const auto left = hooks_.left;
                 left();
               });
}

void Leading::dissolve() {
  ended_ = true;
  const TxnOp all = TxnOp::erase(group_.keys.all());
  const Txn txn{.when = {{group_.keys.head(), Compare::What::kCreatedAt, group_.epoch}},
                .then = {TxnOp::erase({group_.keys.head(), {}}), all},
                .otherwise = {all}};
  write(txn, [this](const TxnReply&) {
    const auto left = hooks_.left;
    left();
  });
}

void Leading::announce() {
  const GroupHead head{.instance = group_.instance, .identity = ownIdentity(), .who = group_.who};
  // The head may be gone again already, or another group's.
  write({.when = {{group_.keys.head(), Compare::What::kCreatedAt, group_.epoch}},
         .then = {TxnOp::put(group_.keys.head(), encode(head), context_.lease().id())}},
        [this](const TxnReply&) { flush(); });
}

void Leading::end(std::vector<TxnOp> also) {
  if (std::exchange(ended_, true)) {
    if (!also.empty())
      context_.txn({.then = std::move(also)}, context_.patience(), [](const auto&) {});
    return;
  }
  // With the lease all of it is gone; and a key without a lease would stay for ever.
  if (context_.lease().id() == 0) return;
  Txn txn{.when = {{group_.keys.head(), Compare::What::kCreatedAt, group_.epoch}},
          .then = std::move(also)};
  txn.then.push_back(
      TxnOp::put(group_.keys.lead(), encode(LeadMessage{.over = true}), context_.lease().id()));
  txn.otherwise = txn.then;
  txn.then.push_back(TxnOp::erase({group_.keys.head(), {}}));
  context_.txn(txn, context_.patience(), [](const auto&) {});
}

}  // namespace viaduct::meet::etcd
