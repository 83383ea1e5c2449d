#include "meet/etcd/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "meet/etcd/identity.h"

namespace viaduct::meet::etcd {
Membership::Membership(EtcdContext& context, JoinRequest request, Clock::time_point until)
    : context_(context), request_(std::move(request)), until_(until), id_(uniqueNumber()) {}

Membership::~Membership() {
  context_.loop().forget(timer_);
  context_.lease().forgetLoss(loss_);
}

// Part of the time is kept for finding out what was missing.
void Membership::begin() {
  const auto left = until_ - Clock::now();
  explain_at_ = until_ - std::min<Duration>(left / 4, std::chrono::milliseconds(300));
  timer_ = context_.loop().at(explain_at_, [this] {
    timer_ = 0;
    if (phase_ == Phase::kWaiting) explainWaiting();
  });
  loss_ = context_.lease().onLoss([this](const Error& why) {
    if (phase_ == Phase::kWhole)
      lost(why);
    else
      refuse(why);
  });
  enter();
}

void Membership::send(const Txn& txn, Clock::time_point until,
                      std::function<void(Result<TxnReply>)> done) {
  context_.txn(txn, until,
               [done = std::move(done), weak = std::weak_ptr(alive_)](Result<TxnReply> reply) {
                 if (!weak.expired()) done(std::move(reply));
               });
}

std::string Membership::joinMessage() const {
  return encode(UpMessage(JoinMessage{.size = request_.size,
                                      .rank = request_.rank,
                                      .proof = proofOf(context_.token(), request_.group, instance_),
                                      .name = request_.name,
                                      .about = request_.about}));
}

std::string Membership::who() const {
  return request_.rank ? fmt::format("rank {} ({})", *request_.rank, request_.name) : request_.name;
}

// Founds the group, or finds out who did.
void Membership::enter() {
  phase_ = Phase::kEntering;
  context_.lease().want(until_, [this, weak = std::weak_ptr(alive_)](Result<LeaseId> lease) {
    if (weak.expired() || phase_ != Phase::kEntering) return;
    if (!lease) return refuse(std::move(lease).error());
    instance_ = uniqueNumber();
    keys_ = GroupKeys(context_.space(), request_.group, instance_);
    const GroupHead head{.instance = instance_, .identity = ownIdentity(), .who = who()};
    founds_ = true;
    const Txn txn{.when = {{keys_.head()}, {keys_.gaveUp(id_)}},
                  .then = {TxnOp::put(keys_.head(), encode(head), *lease),
                           TxnOp::put(keys_.lead(), encode(LeadMessage{.leader = id_}), *lease),
                           TxnOp::put(keys_.up(id_), joinMessage(), *lease)},
                  .otherwise = {TxnOp::get({keys_.head(), {}})}};
    send(txn, until_, [this](Result<TxnReply> reply) { entered(std::move(reply)); });
  });
}

void Membership::entered(Result<TxnReply> reply) {
  if (phase_ != Phase::kEntering) return;
  if (!reply) return refuse(std::move(reply).error());
  founds_ = false;
  std::optional<GroupHead> head;
  Revision founded = reply->revision;
  if (!reply->succeeded) {
    if (reply->found.empty()) return enter();
    head = decodeHead(reply->found[0].value);
    if (!head)
      return refuse({.code = Code::kProtocol,
                     .operation = fmt::format("join group \"{}\"", request_.group),
                     .detail = fmt::format("the key {} holds foreign data", keys_.head()),
                     .cause = "another version of this program, or another program, wrote it",
                     .remedy = "use another namespace, or another group name"});
    founded = reply->found[0].created;
  }
  // The second case: an answer was lost, and the transaction sent again met itself.
  if (!head || head->instance == instance_) {
    epoch_ = founded;
    has_up_key_ = true;
    leader_id_ = id_;
    lead_modified_ = founded;
    startLeading(Leader({.group = request_.group,
                         .size = request_.size,
                         .proof = proofOf(context_.token(), request_.group, instance_),
                         .self = id_}));
    return watch(founded);
  }
  const KeyValue& kv = reply->found[0];
  if (kv.lease != 0 && kv.created != proven_dead_ && isProvablyDead(head->identity))
    return takeBackDead(kv);
  requestJoin(kv, *head);
}

// The leader of a killed run on this host: its lease, and all that hangs on it, need not be waited
// for. Whether that worked is seen when we enter again.
void Membership::takeBackDead(const KeyValue& head) {
  proven_dead_ = head.created;
  context_.client().call(kRevokePath, leaseJson(head.lease), until_,
                         [this, weak = std::weak_ptr(alive_)](const Result<std::string>&) {
                           if (!weak.expired() && phase_ == Phase::kEntering) enter();
                         });
}

void Membership::requestJoin(const KeyValue& head, const GroupHead& decoded) {
  instance_ = decoded.instance;
  leader_who_ = decoded.who;
  keys_ = GroupKeys(context_.space(), request_.group, instance_);
  // Where an answer was lost and this is sent again, our key is there: all that has come since it
  // was made is ours to hear.
  const TxnOp up = TxnOp::get({keys_.up(id_), {}}), lead = TxnOp::get({keys_.lead(), {}});
  const Txn txn{.when = {{keys_.head(), Compare::What::kCreatedAt, head.created},
                         {keys_.up(id_)},
                         {keys_.gaveUp(id_)}},
                .then = {TxnOp::put(keys_.up(id_), joinMessage(), context_.lease().id()), lead},
                .otherwise = {up, lead}};
  has_up_key_ = true;
  send(txn, until_, [this, epoch = head.created](Result<TxnReply> reply) {
    joinRequested(epoch, std::move(reply));
  });
}

void Membership::joinRequested(Revision epoch, Result<TxnReply> reply) {
  if (phase_ != Phase::kEntering) return;
  if (!reply) return refuse(std::move(reply).error());
  std::optional<LeadMessage> lead;
  Revision seated = reply->succeeded ? reply->revision : 0;
  for (const KeyValue& kv : reply->found) {
    if (kv.key == keys_.up(id_)) {
      seated = kv.created;
      continue;
    }
    lead = decodeLead(kv.value);
    if (!lead) continue;
    leader_id_ = lead->leader;
    lead_modified_ = kv.modified;
  }
  has_up_key_ = seated != 0;
  if (!has_up_key_) return enter();
  epoch_ = epoch;
  watch(seated + 1);
  if (!lead || lead->over) again();
}

// The group that we wanted to join is no more, and never was whole: join the next one.
void Membership::again() {
  watch_.reset();
  leading_.reset();
  welcome_ = false;
  answered_ = 0;
  assembly_ = {};
  if (std::exchange(has_up_key_, false))
    context_.txn({.then = {TxnOp::erase({keys_.up(id_), {}}), TxnOp::erase({keys_.here(id_), {}})}},
                 context_.patience(), [](const auto&) {});
  // Nothing that is still on its way for the old one can be taken for the new one's.
  id_ = uniqueNumber();
  enter();
}

void Membership::watch(Revision from) {
  phase_ = Phase::kWaiting;
  std::vector<KeyRange> ranges{keys_.down(), {keys_.answer(id_), {}}};
  if (leading_) ranges.push_back(keys_.up());
  watch_ = std::make_unique<Watch>(
      context_.loop(), context_.client(), std::move(ranges), from,
      Watch::Handlers{.event = [this](const WatchEvent& event) { heard(event); },
                      .snapshot = [this](const std::vector<KeyValue>& all) { reread(all); },
                      .failed =
                          [this](Error why) {
                            if (phase_ == Phase::kWhole)
                              lost(std::move(why));
                            else
                              refuse(std::move(why));
                          }});
  if (Clock::now() >= explain_at_) explainWaiting();
}

void Membership::startLeading(Leader leader) {
  leading_ = std::make_unique<Leading>(
      context_,
      Leading::LedGroup{
          .keys = keys_, .instance = instance_, .epoch = epoch_, .self = id_, .who = who()},
      std::move(leader),
      Leading::Hooks{.left =
                         [this] {
                           leading_.reset();
                           if (bye_said_) board.change([this] { state.finished = true; });
                         },
                     .failed =
                         [this](Error why) {
                           if (phase_ == Phase::kWhole)
                             lost(std::move(why));
                           else
                             refuse(std::move(why));
                         }});
}

void Membership::heard(const WatchEvent& event) {
  const std::string& key = event.kv.key;
  if (keys_.up().holds(key)) {
    if (leading_) leading_->heard(event);
    return;
  }
  if (key == keys_.lead()) {
    if (event.deleted) return leaderVanished();
    if (const auto lead = decodeLead(event.kv.value)) led(event.kv, *lead);
    return;
  }
  // What is taken away was heard before.
  if (!event.deleted) heardLeader(key, event.kv.value);
}

// What makes no sense is as if it were not there.
void Membership::heardLeader(const std::string& key, const std::string& value) {
  const auto pass = [this](auto message, auto handler) {
    if (message) (this->*handler)(*std::move(message));
  };
  if (key == keys_.answer(id_)) return pass(decodeAnswer(value), &Membership::answered);
  if (key == keys_.stop()) return pass(decodeStop(value), &Membership::stopRequested);
  if (key == keys_.call()) return pass(decodeCall(value), &Membership::called);
  if (key == keys_.trouble()) return pass(decodeTrouble(value), &Membership::troubled);
  if (keys_.isPart(key)) return pass(decodePart(value), &Membership::part);
}

void Membership::reread(const std::vector<KeyValue>& all) {
  const auto weak = std::weak_ptr(alive_);
  const Revision epoch = epoch_;
  bool lead_is_there = false;
  for (const KeyValue& kv : all) {
    lead_is_there = lead_is_there || kv.key == keys_.lead();
    if (keys_.up().holds(kv.key)) continue;
    heard({.kv = kv});
    if (weak.expired() || phase_ == Phase::kOver || phase_ == Phase::kEntering || epoch_ != epoch)
      return;
  }
  if (!lead_is_there) return leaderVanished();
  if (leading_) leading_->reread(all);
}

void Membership::answered(const AnswerMessage& answer) {
  if (phase_ != Phase::kWaiting) return;
  if (answer.refused) return refuse(*answer.refused);
  welcome_ = true;
}

// In any phase: whoever comes while the group runs is refused only when we are there.
void Membership::called(const CallMessage& call) {
  if (call.number <= answered_ || bye_said_) return;
  answered_ = call.number;
  send({.then = {TxnOp::put(keys_.here(id_), encode(call), context_.lease().id())}},
       context_.patience(), [](const Result<TxnReply>&) {});
}

void Membership::led(const KeyValue& kv, const LeadMessage& lead) {
  lead_modified_ = kv.modified;
  if (lead.over) {
    if (phase_ == Phase::kWaiting && !leading_) again();
    return;
  }
  leader_id_ = lead.leader;
  if (phase_ == Phase::kWhole && leader_id_ == id_ && !leading_) {
    startLeading(Leader({.group = request_.group,
                         .size = request_.size,
                         .proof = proofOf(context_.token(), request_.group, instance_),
                         .self = id_},
                        leased_members_, lead));
    leading_->announce();
    watch_->add(keys_.up(), lead.seen + 1);
  }
  if (bye_wanted_) sayGoodbye();
}

void Membership::leaderVanished() {
  // However many have been seated: without a leader the group never becomes whole.
  if (phase_ == Phase::kWaiting && !leading_) return again();
  // Our goodbye may have been the last one, with which the group ended: its answer says so.
  if (bye_under_way_) return;
  std::string name = leader_who_.empty() ? who() : leader_who_;
  std::string peer = name;
  for (const LeasedMember& leased : leased_members_)
    if (leased.id == leader_id_) {
      peer = leased.member.name;
      name = fmt::format("rank {} ({})", leased.member.rank, peer);
    }
  Error why{.code = Code::kPeerLost,
            .operation = "group",
            .detail = fmt::format("{} died{}", name,
                                  phase_ == Phase::kWaiting ? " while the group formed" : ""),
            .peer = std::move(peer),
            .cause = "its process ended or hangs, or it cannot reach etcd",
            .remedy = "check that member's log"};
  troubled(why);
}

void Membership::troubled(const Error& why) {
  if (phase_ == Phase::kWhole) return lost(why);
  if (phase_ != Phase::kWaiting) return;
  if (leading_) return refuse(why);
  again();
}

void Membership::stopRequested(const StopMessage& stop) {
  board.change([&] { state.stop_requested_by = stop.rank; });
}

void Membership::part(PartMessage message) {
  if (whole_round_ && message.round <= *whole_round_) return;
  if (message.round != assembly_.round || message.parts != assembly_.parts)
    assembly_ = {.round = message.round, .parts = message.parts};
  assembly_.have[message.part] = std::move(message.bytes);
  if (assembly_.have.size() < assembly_.parts) return;
  std::string bytes;
  for (const auto& [number, piece] : assembly_.have) bytes += piece;
  whole(std::exchange(assembly_, {}).round, bytes);
}

void Membership::whole(std::uint64_t round, const std::string& bytes) {
  const Error nonsense{
      .code = Code::kProtocol,
      .operation = "group",
      .detail = fmt::format("the outcome of round {} is malformed", round),
      .cause = "the members have different versions, or another program wrote the keys"};
  if (round == 0) {
    auto leased_members = decodeRoster(bytes);
    if (!leased_members || phase_ != Phase::kWaiting) return refuse(nonsense);
    return roster(*std::move(leased_members));
  }
  auto values = decodeValues(bytes);
  if (!values || values->size() != leased_members_.size()) return lost(nonsense);
  whole_round_ = round;
  board.change([&] {
    state.round = round;
    state.values = *std::move(values);
    state.missing.reset();
  });
}

void Membership::roster(std::vector<LeasedMember> leased_members) {
  Roster out{.group = request_.group, .epoch = static_cast<std::uint64_t>(epoch_)};
  bool found = false;
  for (const LeasedMember& leased : leased_members) {
    out.members.push_back(leased.member);
    if (leased.id != id_) continue;
    out.rank = leased.member.rank;
    found = true;
  }
  if (!found) return;  // the leader refuses us, or we wait for that group's end
  leased_members_ = std::move(leased_members);
  whole_round_ = 0;
  phase_ = Phase::kWhole;
  board.change([&] { state.roster = std::move(out); });
}

void Membership::lost(Error why) {
  if (phase_ != Phase::kWhole || state.finished) return;
  phase_ = Phase::kOver;
  // What we write with a lease that etcd has taken away, or for longer than it is kept alive, is
  // heard of before the loss of the lease itself.
  if (why.code == Code::kNotFound) why.cause = context_.lease().whyGone();
  if (why.code == Code::kNotFound || why.code == Code::kTimeout) why.code = Code::kPeerLost;
  if (leading_) leading_->end({});
  watch_.reset();
  board.change([&] {
    // Whoever has said goodbye is not concerned any more.
    state.finished = bye_said_;
    if (bye_said_) return;
    if (bye_wanted_) state.unfinished = why;
    state.trouble = std::move(why);
  });
}

void Membership::refuse(Error why) {
  if (phase_ == Phase::kOver || phase_ == Phase::kWhole) return;
  const bool waiting = phase_ == Phase::kWaiting;
  phase_ = Phase::kOver;
  if (leading_ && waiting) leading_->end({});
  watch_.reset();
  if (why.operation.starts_with("etcd"))
    why.operation = fmt::format("join group \"{}\": {}", request_.group, why.operation);
  board.change([&] { state.refused = std::move(why); });
}

}  // namespace viaduct::meet::etcd
