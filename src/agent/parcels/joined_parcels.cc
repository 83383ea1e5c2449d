// Parcels with parts at several agents. The owner decides, and the other agents lend the parts that
// it asks for.
#include <fmt/format.h>

#include <algorithm>

#include "agent/parcels/parcels.h"
#include "agent/peers/peer_impl.h"
#include "agent/session/frame_rules.h"

namespace viaduct::agent {
namespace {

// The most parts that the parcels of one peer may have here.
constexpr std::size_t kMaxAddedParts = std::size_t{1} << 18U;

Error unknownAdd(std::uint64_t number, std::uint64_t last) {
  return brokenRule(fmt::format("parcel {} was never added: the last one is {}", number, last));
}

ParcelEnd failedAs(Error why) { return {.outcome = ParcelOutcome::kFailed, .why = std::move(why)}; }

}  // namespace

// The owner's side.

Status Parcels::hearAdd(PeerImpl& peer, AddMessage add) {
  ParcelSession& session = sessionOf(peer);
  if (add.number <= session.heard_add) return unknownAdd(add.number, session.heard_add);
  session.heard_add = add.number;
  const std::uint64_t by = peer.sessionNumber();
  const auto refuse = [&](Error why) {
    peer.tellParcel(encodeParcel(CloseMessage{true, add.number, failedAs(std::move(why))}));
    return Ok{};
  };
  if (peer.refusesNew()) return refuse(peer.drainError("publish"));
  // After the parcel's end, a late publishing rank would wait for ranks that have left.
  if (const ParcelEnd* const end = owner_.endOf(add.spec.name, add.spec.version)) {
    peer.tellParcel(encodeParcel(CloseMessage{true, add.number, *end}));
    return Ok{};
  }
  session.added_parts += add.spec.parts.size();
  if (session.added_parts > kMaxAddedParts)
    return refuse({.code = Code::kExhausted,
                   .operation = "publish",
                   .detail = fmt::format("the parcels of this peer have more than {} parts here",
                                         kMaxAddedParts),
                   .remedy = "withdraw parcels that nobody needs"});
  auto id = owner_.publish(add.spec);
  if (!id) {
    owner_.conflict(add.spec, id.error());
    return refuse(std::move(id).error());
  }
  if (!number_of_.emplace(SessionNumber{by, *id}, add.number).second)
    return refuse({.code = Code::kInvalid,
                   .operation = "publish",
                   .detail = "this agent has added parts of this version already"});
  added_.emplace(SessionNumber{by, add.number}, *id);
  owner_.addHolder(*id, by);
  return Ok{};
}

Status Parcels::hearOfAdded(PeerImpl& peer, const ParcelMessage& message) {
  const std::uint64_t by = peer.sessionNumber();
  const auto number_of_message = [](const auto& m) -> std::uint64_t { return m.number; };
  const std::uint64_t number = std::visit(number_of_message, message);
  if (number > sessionOf(peer).heard_add) return unknownAdd(number, sessionOf(peer).heard_add);
  const auto found = added_.find({by, number});
  if (found == added_.end()) return Ok{};  // the parcel has ended
  const std::uint64_t id = found->second;
  if (const auto* const has = std::get_if<HasMessage>(&message)) {
    if (const Status ready = owner_.ready(id, has->part, by); !ready) {
      ParcelEnd end = failedAs(ready.error());
      end.part = has->part;
      owner_.end(id, std::move(end));
    }
  } else if (const auto* const lent = std::get_if<LentMessage>(&message)) {
    if (!owner_.isLent(lent->taker, lent->part, by)) return Ok{};
    const auto to = sessions_.find(lent->taker.session);
    if (lent->why)
      owner_.lendFailed(lent->taker, lent->part, *lent->why);
    else if (to != sessions_.end())
      to->second.peer->tellParcel(encodeParcel(ReadyMessage{.number = lent->taker.number,
                                                            .part = lent->part,
                                                            .holder = peer.name(),
                                                            .ticket = lent->ticket,
                                                            .digests = lent->digests}));
  } else if (const auto* const freed = std::get_if<FreedMessage>(&message)) {
    if (owner_.isLent(freed->taker, freed->part, by)) owner_.leaseEnded(freed->taker, freed->part);
  } else if (const auto* const close = std::get_if<CloseMessage>(&message)) {
    owner_.end(id, close->end);
  }
  return Ok{};
}

void Parcels::askHolder(const LendPart& lend) {
  const auto holder = sessions_.find(lend.holder);
  const auto number = number_of_.find({lend.holder, lend.parcel});
  if (holder == sessions_.end() || number == number_of_.end()) return;  // the parcel ends
  holder->second.peer->tellParcel(
      encodeParcel(LendMessage{.number = number->second,
                               .part = lend.part,
                               .taker = lend.taker,
                               .consumer = sessions_.at(lend.taker.session).peer->name()}));
}

void Parcels::tellHolders(const ParcelOver& over) {
  for (const Holder holder : over.holders) {
    const auto number = number_of_.extract({holder, over.parcel});
    if (!number) continue;
    added_.erase({holder, number.mapped()});
    if (const auto to = sessions_.find(holder); to != sessions_.end()) {
      to->second.added_parts -= std::min(to->second.added_parts, over.parts);
      to->second.peer->tellParcel(encodeParcel(CloseMessage{true, number.mapped(), over.end}));
    }
  }
}

void Parcels::holderLost(std::uint64_t session) {
  added_.erase(added_.lower_bound({session, 0}), added_.lower_bound({session + 1, 0}));
  number_of_.erase(number_of_.lower_bound({session, 0}), number_of_.lower_bound({session + 1, 0}));
}

// The side of a holder.

Result<std::shared_ptr<Publication>> Parcels::join(const std::string& name, PublishOptions options,
                                                   std::shared_ptr<PeerImpl> owner) {
  if (owner->refusesNew()) return owner->drainError("publish");
  if (!owner->isOpen()) return owner->notReady("publish");
  VIADUCT_CHECK(owner->has(Feature::kParcels, "publish"));
  const std::uint64_t session = owner->sessionNumber();
  ParcelSpec spec{.name = name,
                  .version = options.version,
                  .layout = options.layout,
                  .parts = options.parts,
                  .takers = options.takers};
  std::ranges::sort(spec.parts);
  for (auto at = joined_.lower_bound({session, 0});
       at != joined_.end() && at->first.first == session; ++at)
    if (at->second->spec == spec && !at->second->closing) return at->second;
  const std::uint64_t number = ++sessionOf(*owner).last_add;
  auto out = std::make_shared<Publication>(basis_.shared_from_this(), *this, 0);
  out->owner = std::move(owner);
  out->session = session;
  out->number = number;
  out->spec = std::move(spec);
  out->options = std::move(options);
  joined_.emplace(SessionNumber{session, number}, out);
  out->owner->tellParcel(encodeParcel(AddMessage{number, out->spec}));
  run();
  return out;
}

Status Parcels::hearAsHolder(PeerImpl& peer, const ParcelMessage& message) {
  const std::uint64_t session = peer.sessionNumber();
  const auto number_of_message = [](const auto& m) -> std::uint64_t { return m.number; };
  const std::uint64_t number = std::visit(number_of_message, message);
  if (const std::uint64_t last = sessionOf(peer).last_add; number > last)
    return unknownAdd(number, last);
  if (const auto* const asked = std::get_if<LendMessage>(&message))
    peer.tellParcel(encodeParcel(lent(*asked, peer)));
  else if (const auto* const cut = std::get_if<CutMessage>(&message))
    cutLeases(session, cut->taker);
  else if (const auto found = joined_.find({session, number}); found != joined_.end()) {
    const auto publication = found->second;
    publication->closing = std::get<CloseMessage>(message).end;
    endJoined(publication);
  }
  return Ok{};
}

LentMessage Parcels::lent(const LendMessage& asked, PeerImpl& owner) {
  LentMessage out{.number = asked.number, .part = asked.part, .taker = asked.taker};
  const std::uint64_t session = owner.sessionNumber();
  const LentKey key{.owner = session, .taker = asked.taker, .part = asked.part};
  const auto found = joined_.find({session, asked.number});
  const auto consumer = namedPeer(owner.peers(), asked.consumer);
  const bool has = found != joined_.end() && found->second->parts.contains(asked.part);
  if (!has || lent_.contains(key)) {
    out.why = {.code = Code::kStale,
               .operation = "lease",
               .detail = fmt::format("agent {} does not lend the part", basis_.settings().name)};
    return out;
  }
  if (consumer == nullptr) {
    out.why = {.code = Code::kNotFound,
               .operation = "lease",
               .detail = fmt::format("agent {}, which has the part, has no session with {}",
                                     basis_.settings().name, asked.consumer),
               .remedy = "connect each consumer to all publishing ranks"};
    return out;
  }
  auto ready = lendPart(key, found->second, consumer);
  if (ready) {
    out.ticket = std::move(ready->ticket);
    out.digests = std::move(ready->digests);
  } else {
    out.why = std::move(ready).error();
  }
  return out;
}

// A publication at another owner ends once its owner has said so, and nobody reads here any more.
void Parcels::endJoined(const std::shared_ptr<Publication>& publication) {
  const auto is_of = [&](const auto& lent) { return lent.second.publication == publication; };
  const auto& closing = publication->closing;
  if (!closing || publication->end || std::ranges::any_of(lent_, is_of)) return;
  joined_.erase({publication->session, publication->number});
  publicationOver(*publication, *closing);
}

void Parcels::ownerLost(std::uint64_t session, const Error& why) {
  for (auto at = lent_.lower_bound({session, {}, {}});
       at != lent_.end() && at->first.owner == session; ++at)
    at->second.peer->leases().endLent(*at->second.lease, LeaseState::kRevoked);
  std::vector<std::shared_ptr<Publication>> lost;
  for (auto at = joined_.lower_bound({session, 0});
       at != joined_.end() && at->first.first == session; ++at)
    lost.push_back(at->second);
  for (const auto& publication : lost) {
    if (!publication->closing)
      publication->closing = {
          .outcome = ParcelOutcome::kLost, .version = publication->spec.version, .why = why};
    endJoined(publication);
  }
}

}  // namespace viaduct::agent
