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

Leading::Leading(Core& core, Place place, Leader leader, Hooks hooks)
    : core_(core), place_(std::move(place)), leader_(std::move(leader)), hooks_(std::move(hooks)) {}

void Leading::heard(const Event& event) {
  if (const auto here = place_.keys.answererOf(event.kv.key)) {
    const auto call = event.deleted ? std::nullopt : decodeCall(event.kv.value);
    if (call) leader_.answered(*here, call->number);
    return flush();
  }
  const auto id = place_.keys.memberOf(event.kv.key);
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
    if (place_.keys.up().holds(kv.key)) {
      ups.push_back(&kv);
      if (const auto id = place_.keys.memberOf(kv.key)) there.insert(*id);
    }
  std::ranges::sort(ups, {}, [](const KeyValue* kv) { return kv->modified; });
  for (const KeyValue* kv : ups) heard({.kv = *kv});
  for (const MemberId id : leader_.members())  // and of those who wait
    if (!there.contains(id)) leader_.vanished(id);
  flush();
}

void Leading::collect() {
  const LeaseId lease = core_.lease().id();
  Leader::Outbox out = leader_.take();
  for (const auto& [id, answer] : out.answers)
    ops_.push_back(Op::put(place_.keys.answer(id), encode(answer), lease));
  const auto broadcast = [&](std::uint64_t round, const std::string& bytes) {
    for (const PartMessage& part : cut(round, bytes))
      ops_.push_back(Op::put(place_.keys.part(part.part), encode(part), lease));
  };
  if (out.roster) broadcast(0, encodeSeats(*out.roster));
  for (const auto& [round, bytes] : out.rounds) broadcast(round, bytes);
  if (out.call) ops_.push_back(Op::put(place_.keys.call(), encode(CallMessage{*out.call}), lease));
  if (out.trouble) ops_.push_back(Op::put(place_.keys.trouble(), encode(*out.trouble), lease));
}

void Leading::write(const Txn& txn, std::function<void(const TxnReply&)> done) {
  busy_ = true;
  core_.txn(txn, core_.patience(),
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
    if (leader_.saidGoodbye(place_.self) && !ended_ && !stuck_) handOver();
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
                      place_.self);
  const Seat& heir = heirs[random.below(heirs.size())];
  const LeadMessage lead{.leader = heir.id,
                         .seen = leader_.seen(),
                         .rounds = leader_.roundsDone(),
                         .gone = leader_.gone()};
  const std::string key = place_.keys.up(heir.id);
  using What = Compare::What;
  // Not to one who says goodbye at this very moment.
  const Txn txn{
      .when = {{key, What::kCreatedAfter, 0}, {key, What::kModifiedUpTo, leader_.seen()}},
      .then = {Op::put(place_.keys.head(), encode(Head{.instance = place_.instance}), heir.lease),
               Op::put(place_.keys.lead(), encode(lead), heir.lease)}};
  busy_ = true;
  core_.txn(txn, core_.patience(),
            [this, news = news_, weak = std::weak_ptr(alive_)](Result<TxnReply> reply) {
              if (weak.expired()) return;
              busy_ = false;
              if (!reply && reply.error().code != Code::kNotFound) {
                const auto failed = hooks_.failed;
                return failed(std::move(reply).error());
              }
              // Its lease is no more, or it has said something: we are about to hear of it, or have
              // meanwhile.
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
  const Op all = Op::erase(place_.keys.all());
  const Txn txn{.when = {{place_.keys.head(), Compare::What::kCreatedAt, place_.epoch}},
                .then = {Op::erase({place_.keys.head(), {}}), all},
                .otherwise = {all}};
  write(txn, [this](const TxnReply&) {
    const auto left = hooks_.left;
    left();
  });
}

void Leading::announce() {
  const Head head{.instance = place_.instance, .identity = ownIdentity(), .who = place_.who};
  // The head may be gone again already, or another group's.
  write({.when = {{place_.keys.head(), Compare::What::kCreatedAt, place_.epoch}},
         .then = {Op::put(place_.keys.head(), encode(head), core_.lease().id())}},
        [this](const TxnReply&) { flush(); });
}

void Leading::end(std::vector<Op> also) {
  if (std::exchange(ended_, true)) {
    if (!also.empty()) core_.txn({.then = std::move(also)}, core_.patience(), [](const auto&) {});
    return;
  }
  // With the lease all of it is gone; and a key without a lease would stay for ever.
  if (core_.lease().id() == 0) return;
  Txn txn{.when = {{place_.keys.head(), Compare::What::kCreatedAt, place_.epoch}},
          .then = std::move(also)};
  txn.then.push_back(
      Op::put(place_.keys.lead(), encode(LeadMessage{.over = true}), core_.lease().id()));
  txn.otherwise = txn.then;
  txn.then.push_back(Op::erase({place_.keys.head(), {}}));
  core_.txn(txn, core_.patience(), [](const auto&) {});
}

}  // namespace viaduct::meet::etcd
