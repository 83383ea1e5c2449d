// What a member does of its own accord; what it hears is in membership.cc.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "meet/etcd/membership.h"

namespace viaduct::meet::etcd {
namespace {

std::string list(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i)
    out += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kNamed) out += fmt::format(" and {} more", names.size() - kNamed);
  return out;
}

std::string nameOf(const Member& member) {
  return fmt::format("rank {} ({})", member.rank, member.name);
}

// The lowest ranks of a group that nobody asked for.
std::string freeRanks(const std::set<std::uint32_t>& asked, std::uint32_t size) {
  std::vector<std::string> free;
  for (std::uint32_t rank = 0; rank < size && free.size() < kNamed; ++rank)
    if (!asked.contains(rank)) free.push_back(fmt::format("{}", rank));
  if (free.empty()) return {};
  return fmt::format("{}{}", fmt::join(free, ", "),
                     asked.size() + free.size() < size ? " and more" : "");
}

// Who is there of a group that is still forming, and who is not.
std::string attendance(const std::vector<KeyValue>& ups, std::uint32_t size) {
  std::vector<std::string> there;
  std::set<std::uint32_t> asked;
  bool all_asked = true;
  for (const KeyValue& kv : ups) {
    const auto message = decodeUp(kv.value);
    if (!message) continue;
    const auto* join = std::get_if<JoinMessage>(&*message);
    if (join == nullptr) return "an earlier group of this name is still ending";
    there.push_back(join->rank ? fmt::format("rank {} ({})", *join->rank, join->name) : join->name);
    all_asked = all_asked && join->rank;
    if (join->rank) asked.insert(*join->rank);
  }
  std::ranges::sort(there);
  std::string out = fmt::format("{} of {} members joined: {}", there.size(), size, list(there));
  const std::string free = all_asked ? freeRanks(asked, size) : "";
  return free.empty() ? out : fmt::format("{}; missing: rank {}", out, free);
}

// Who has given a value for that round.
std::set<MemberId> givers(const GroupKeys& keys, const std::vector<KeyValue>& ups,
                          std::uint64_t round) {
  std::set<MemberId> out;
  for (const KeyValue& kv : ups) {
    const auto message = decodeUp(kv.value);
    const auto* value = message ? std::get_if<ValueMessage>(&*message) : nullptr;
    const auto id = keys.memberOf(kv.key);
    if (id && value != nullptr && value->round >= round) out.insert(*id);
  }
  return out;
}

}  // namespace

void Membership::explainWaiting() {
  send({.then = {TxnOp::get(keys_.up())}}, until_, [this](const Result<TxnReply>& reply) {
    if (phase_ != Phase::kWaiting) return;
    board.change([&] {
      if (!state.roster) state.refused = whyNotFormed(reply);
    });
  });
}

void Membership::askWhoIsMissing() {
  auto trouble = context_.client().trouble();
  if (phase_ != Phase::kWaiting || trouble) {
    Error why = trouble.value_or(
        Error{.operation = context_.text(), .detail = "etcd has not answered yet"});
    return board.change([&] { state.missing = std::move(why); });
  }
  send({.then = {TxnOp::get(keys_.up())}}, Clock::now() + kAskTime,
       [this](const Result<TxnReply>& reply) {
         board.change([&] { state.missing = whyNotFormed(reply); });
       });
}

Error Membership::whyNotFormed(const Result<TxnReply>& reply) const {
  Error why{.code = Code::kTimeout, .operation = fmt::format("join group \"{}\"", request_.group)};
  if (!reply) {
    why.detail = reply.error().detail;
    why.cause = reply.error().cause;
    why.remedy = reply.error().remedy;
  } else if (!welcome_ && !leading_) {
    why.detail = fmt::format("the group's leader {} has not answered; {}", leader_who_,
                             attendance(reply->found, request_.size));
    why.cause = "it is stopped, or dead with an unexpired lease, or its group is ending";
    why.remedy = "wait longer, or use another group name";
  } else {
    why.detail = attendance(reply->found, request_.size);
    why.cause = "they have not started, or use another etcd, namespace or group name";
    why.remedy = "check the logs of the missing members";
  }
  return why;
}

void Membership::give(std::uint64_t round, std::string value) {
  next_value_ = {round, std::move(value)};
  giveNext();
}

void Membership::giveNext() {
  if (phase_ != Phase::kWhole || giving_ || !next_value_) return;
  giving_ = true;
  const auto message = encode(UpMessage(*std::move(next_value_)));
  next_value_.reset();
  send({.then = {TxnOp::put(keys_.up(id_), message, context_.lease().id())}}, context_.patience(),
       [this](Result<TxnReply> reply) {
         giving_ = false;
         if (!reply) return lost(std::move(reply).error());
         giveNext();
         if (bye_wanted_) sayGoodbye();
       });
}

void Membership::askWhoIsMissing(std::uint64_t round, Clock::time_point until) {
  send({.then = {TxnOp::get(keys_.up())}}, until, [this, round](const Result<TxnReply>& reply) {
    Error why = whyNotWhole(round, reply);
    board.change([&] {
      if (state.round < round) state.missing = std::move(why);
    });
  });
}

Error Membership::whyNotWhole(std::uint64_t round, const Result<TxnReply>& reply) const {
  if (!reply) {
    Error why = reply.error();
    why.code = Code::kTimeout;
    why.operation = "gather: etcd";
    return why;
  }
  const auto given = givers(keys_, reply->found, round);
  std::vector<std::string> missing;
  for (const LeasedMember& leased : leased_members_)
    if (!given.contains(leased.id)) missing.push_back(nameOf(leased.member));
  Error why{.code = Code::kTimeout, .operation = "gather"};
  if (missing.empty()) {
    why.detail = fmt::format("all members reached round {}, but its outcome did not arrive", round);
    why.cause = "etcd is slow";
  } else {
    why.detail = fmt::format("{} did not reach round {}", list(missing), round);
    why.cause = "it is slower than this member, or hangs";
  }
  return why;
}

void Membership::finish(Clock::time_point until) {
  bye_wanted_ = true;
  bye_until_ = until;
  if (phase_ == Phase::kWhole) return sayGoodbye();
  board.change([this] { state.unfinished = state.trouble; });
}

// Where an answer was lost and the goodbye is sent again, it stands there, or the group has ended
// with it: whoever dies leaves the others' keys.
bool Membership::saidBefore(const TxnReply& reply) const {
  const auto own = std::ranges::find(reply.found, keys_.up(id_), &KeyValue::key);
  if (own == reply.found.end()) return reply.found.empty();
  const auto message = decodeUp(own->value);
  return message && std::holds_alternative<ByeMessage>(*message);
}

// Only while the lead is where we think it is: it must not fall to us as we go.
void Membership::sayGoodbye() {
  if (bye_said_ || bye_under_way_ || giving_ || phase_ != Phase::kWhole) return;
  bye_under_way_ = true;
  const Txn txn{
      .when = {{keys_.lead(), Compare::What::kModifiedAt, lead_modified_}},
      .then = {TxnOp::put(keys_.up(id_), encode(UpMessage(ByeMessage{})), context_.lease().id())},
      .otherwise = {TxnOp::get({keys_.up(id_), {}}), TxnOp::get({keys_.lead(), {}})}};
  send(txn, bye_until_, [this, known = lead_modified_](Result<TxnReply> reply) {
    bye_under_way_ = false;
    if (!reply) {
      board.change([&] { state.unfinished = std::move(reply).error(); });
      return;
    }
    const bool led = std::ranges::any_of(
        reply->found, [this](const KeyValue& kv) { return kv.key == keys_.lead(); });
    if (reply->succeeded || saidBefore(*reply)) {
      bye_said_ = true;
      if (!leading_) board.change([this] { state.finished = true; });
      return;
    }
    if (!led) return leaderVanished();
    // Who leads now is about to be heard of, or has been meanwhile.
    if (lead_modified_ != known) sayGoodbye();
  });
}

const Member& Membership::self() const {
  return std::ranges::find_if(leased_members_,
                              [this](const LeasedMember& leased) { return leased.id == id_; })
      ->member;
}

void Membership::requestStop() {
  if (phase_ != Phase::kWhole) return;
  const std::string message = encode(StopMessage{self().rank});
  context_.txn({.then = {TxnOp::put(keys_.stop(), message, context_.lease().id())}},
               context_.patience(), [](const auto&) {});
}

void Membership::abandon(const std::string& reason, std::function<void()> done) {
  if (phase_ != Phase::kWhole) return done();
  const Error why{.code = Code::kCancelled,
                  .operation = "group",
                  .detail = fmt::format("{} ended it: {}", nameOf(self()), reason),
                  .peer = self().name};
  context_.txn({.then = {TxnOp::put(keys_.trouble(), encode(why), context_.lease().id())}},
               context_.patience(), [done = std::move(done)](const auto&) { done(); });
  lost(why);
}

void Membership::leave() {
  // What hung on a lease that is lost is gone with it, and nothing can be hung on it any more.
  if (context_.lease().id() == 0) return;
  if (founds_) return takeBackFounding();
  if (!std::exchange(has_up_key_, false)) return;
  std::vector<TxnOp> ops{TxnOp::erase({keys_.up(id_), {}}), TxnOp::erase({keys_.here(id_), {}})};
  const bool forming = !whole_round_;
  if (phase_ == Phase::kWhole && !bye_said_) {
    const Error why{
        .code = Code::kPeerLost,
        .operation = "group",
        .detail = fmt::format("{} disappeared without leaving the group", nameOf(self())),
        .peer = self().name,
        .remedy = "check that member's log"};
    ops.push_back(TxnOp::put(keys_.trouble(), encode(why), context_.lease().id()));
  }
  if (leading_) return leading_->end(std::move(ops));
  if (!forming)
    return context_.txn({.then = std::move(ops)}, context_.patience(), [](const auto&) {});
  // Says that it gives up before its key goes: that is no death.
  const Txn bye{
      .then = {TxnOp::put(keys_.up(id_), encode(UpMessage(ByeMessage{})), context_.lease().id()),
               TxnOp::put(keys_.gaveUp(id_), {}, context_.lease().id())}};
  context_.txn(bye, context_.patience(), [&context = context_, ops = std::move(ops)](const auto&) {
    context.txn({.then = ops}, context.patience(), [](const auto&) {});
  });
}

// Whether we have founded a group is not known, and it may yet happen.
void Membership::takeBackFounding() {
  const TxnOp gave_up = TxnOp::put(keys_.gaveUp(id_), {}, context_.lease().id());
  const Txn txn{.when = {{keys_.up(id_), Compare::What::kCreatedAfter, 0}},
                .then = {gave_up, TxnOp::erase({keys_.head(), {}}),
                         TxnOp::erase({keys_.lead(), {}}), TxnOp::erase({keys_.up(id_), {}})},
                .otherwise = {gave_up}};
  context_.txn(txn, context_.patience(), [](const auto&) {});
}

}  // namespace viaduct::meet::etcd
