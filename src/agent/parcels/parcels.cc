#include "agent/parcels/parcels.h"

#include <fmt/format.h>
#include <viaduct/card.h>
#include <viaduct/note.h>

#include <algorithm>

#include "agent/basis/block_digester.h"
#include "agent/parcels/part_slice.h"
#include "agent/peers/peer_impl.h"
#include "agent/session/frame_rules.h"
#include "agent/session/lease_ticket.h"
#include "agent/traffic/transfer_impl.h"

namespace viaduct::agent {
namespace {

// The interval at which the end of a lease checks whether a stopped peer has left a copy.
constexpr Duration kLookEvery = std::chrono::milliseconds(5);

// Parts that one fetch reads from one agent at once: at least kEnoughParts, and more while they
// have less than kEnoughBytes.
constexpr std::uint64_t kEnoughParts = 2, kEnoughBytes = std::uint64_t{32} << 20U;

Error cancelledRead(ParcelPart part) {
  return {.code = Code::kCancelled,
          .operation = "fetch",
          .detail = fmt::format("the read of part {} of rank {} was cancelled", part.component,
                                part.rank)};
}

Error overdue(const char* operation, const std::string& name, const char* detail) {
  return {.code = Code::kTimeout,
          .operation = fmt::format("{} parcel {}", operation, name),
          .detail = detail};
}

Error otherOwner(const std::string& parcel, const AgentIdBytes& wanted, const AgentIdBytes& here) {
  return {.code = Code::kInvalid,
          .operation = fmt::format("fetch parcel {}", parcel),
          .detail = fmt::format("the fetch is for agent {}, and this agent is {}",
                                cardIdText(wanted), cardIdText(here)),
          .cause = "the publisher has started again",
          .remedy = "ask the application for the present publisher"};
}

// Ends a read in a callback, once its transfer has ended.
class ReadWatcher final : public base::Watcher {
 public:
  ReadWatcher(Basis& basis, std::function<void()> end) : basis_(basis), end_(std::move(end)) {}
  void changed() override { basis_.owe(end_); }

 private:
  Basis& basis_;
  const std::function<void()> end_;
};

// The peer that lends a part, by the name of its agent; empty: the owner.
Result<std::shared_ptr<PeerImpl>> holderOf(PeerImpl& owner, const std::string& name) {
  if (name.empty()) return owner.shared_from_this();
  if (auto holder = namedPeer(owner.peers(), name)) return holder;
  return Error{.code = Code::kNotFound,
               .operation = "fetch",
               .detail = fmt::format("the part is at agent {}, which is no peer here", name),
               .remedy = "connect to all agents that publish parts of the parcel"};
}

// The bytes of a read, as far as they are known before FetchOptions::place has run.
std::uint64_t bytesToRead(const FetchOptions& options, ParcelPart part, std::uint64_t all) {
  const auto into = std::ranges::find(options.into, part, &PartInto::part);
  return into == options.into.end() || into->slice.count() == 0 ? all : into->slice.bytes();
}

Error neverGiven(std::uint64_t number, std::uint64_t last) {
  return brokenRule(
      fmt::format("fetch {} of a parcel was never begun: the last one is {}", number, last));
}

// A consumer is told of a part in one message, with the ticket of its lease and the digests.
Status checkSize(const HeldPart& part) {
  constexpr std::size_t kMostOfRun = 40, kRest = 4096;  // bytes of a run in a ticket; names, ids
  std::size_t bytes = part.taken.blocks.runs() * kMostOfRun + part.digests.size() + kRest;
  if (bytes <= kMaxNoteBytes) return Ok{};
  bytes = LeaseTicket{.blocks = part.taken.blocks}.encode().size() + part.digests.size() + kRest;
  if (bytes <= kMaxNoteBytes) return Ok{};
  return Error{
      .code = Code::kInvalid,
      .operation = "parcel",
      .detail = fmt::format("a part of {} runs of blocks, with {} bytes of digests, needs "
                            "a message of {} bytes; the limit is {}",
                            part.taken.blocks.runs(), part.digests.size(), bytes, kMaxNoteBytes),
      .remedy = "divide it into several parts, or lay its blocks in fewer runs"};
}

}  // namespace

std::shared_ptr<PeerImpl> namedPeer(Peers& peers, const std::string& name) {
  if (name != peers.basis().settings().name) return peers.find(name);
  auto self = peers.self();
  return self ? *std::move(self) : nullptr;
}

Error errorOf(const ParcelEnd& end, const std::string& name) {
  Error why = end.why.value_or(Error{.code = Code::kCancelled});
  std::string where;
  if (end.part) where += fmt::format(", part {} of rank {}", end.part->component, end.part->rank);
  if (end.consumer) where += fmt::format(", consumer rank {}", *end.consumer);
  why.detail =
      why.operation.empty() ? why.detail : fmt::format("{}: {}", why.operation, why.detail);
  why.operation = fmt::format("fetch parcel {}{}: {}", name, where, parcelOutcomeName(end.outcome));
  return why;
}

Result<HeldPart> heldPart(Publication& publication, const Selection& blocks) {
  HeldPart out;
  VIADUCT_TRY(out.taken, takenBlocks(blocks));
  VIADUCT_CHECK(checkSize(out));
  if (!publication.options.digests) return out;
  auto held = publication.basis().hold();
  VIADUCT_CHECK(publication.basis().usable("parcel"));
  const Selection selection{out.taken.blocks, {}};
  BlockDigester digester(selection, publication.basis().blockMemory());
  held.unlock();
  std::vector<Digest> digests;
  const auto found = [&](std::uint64_t, std::span<const Digest> more) {
    digests.insert(digests.end(), more.begin(), more.end());
  };
  while (!digester.done()) VIADUCT_CHECK(digester.advance(found));
  out.digests = encodeDigests(digests);
  VIADUCT_CHECK(checkSize(out));
  return out;
}

bool hasPart(Publication& publication, const PublishedPart& part) {
  Blocks there;
  {
    const auto held = publication.basis().hold();
    const auto found = publication.parts.find(part.part);
    if (found == publication.parts.end()) return false;
    there = found->second.taken.blocks;
  }
  const auto given = takenBlocks(part.blocks);
  bool same = given && there.runs() == given->blocks.runs();
  for (std::size_t i = 0; same && i < there.runs(); ++i)
    same = there.run(i) == given->blocks.run(i);
  return same;
}

Parcels::Parcels(Basis& basis, Traffic& traffic) : basis_(basis), traffic_(traffic) {}
Parcels::~Parcels() = default;

Result<std::shared_ptr<Publication>> Parcels::publish(const std::string& name,
                                                      PublishOptions options,
                                                      std::shared_ptr<PeerImpl> owner) {
  if (owner != nullptr) {
    VIADUCT_TRY(auto joined, join(name, std::move(options), std::move(owner)));
    ++joined->handles;
    return joined;
  }
  VIADUCT_TRY(const std::uint64_t id, owner_.publish({.name = name,
                                                      .version = options.version,
                                                      .layout = options.layout,
                                                      .parts = options.parts,
                                                      .takers = options.takers}));
  std::shared_ptr<Publication>& out = publications_[id];
  if (out == nullptr) {
    out = std::make_shared<Publication>(basis_.shared_from_this(), *this, id);
    out->options = std::move(options);
    if (const auto& life = out->options.life)
      out->timer = basis_.engine().poller().at(basis_.now() + *life, [this, id, name] {
        if (owner_.isFull(id)) return;  // the parcel ends with its groups
        owner_.end(id, {.outcome = ParcelOutcome::kExpired,
                        .why = overdue("publish", name, "its life is over")});
        run();
      });
  }
  const auto kept = out;
  ++kept->handles;
  run();
  return kept;
}

Status Parcels::makeReady(const std::shared_ptr<Publication>& publication, ParcelPart part,
                          HeldPart&& held) {
  if (publication->owner == nullptr) {
    publication->parts.try_emplace(part, std::move(held));
    Status ready = owner_.ready(publication->id(), part);
    run();
    return ready;
  }
  const auto refused = [&](const char* why) -> Status {
    return Error{.code = Code::kInvalid,
                 .operation = fmt::format("parcel {}", publication->spec.name),
                 .detail = fmt::format("part {} of rank {} {}", part.component, part.rank, why)};
  };
  if (const auto& closing = publication->closing) return errorOf(*closing, publication->spec.name);
  if (!std::ranges::binary_search(publication->spec.parts, part)) return refused("is not declared");
  if (!publication->parts.try_emplace(part, std::move(held)).second)
    return refused("was ready before");
  publication->owner->tellParcel(encodeParcel(HasMessage{publication->number, part}));
  run();
  return Ok{};
}

// The owner answers when nobody reads any more.
void Parcels::withdraw(Publication& publication, ParcelEnd end) {
  if (publication.owner == nullptr)
    owner_.end(publication.id(), std::move(end));
  else if (!publication.closing)
    publication.owner->tellParcel(
        encodeParcel(CloseMessage{.number = publication.number, .end = std::move(end)}));
  run();
}

std::vector<ParcelPart> Parcels::missing(const Publication& publication) const {
  if (publication.owner == nullptr) return owner_.missing(publication.id());
  std::vector<ParcelPart> out;
  for (const ParcelPart part : publication.spec.parts)
    if (!publication.parts.contains(part)) out.push_back(part);
  return out;
}

Parcels::ParcelSession& Parcels::sessionOf(PeerImpl& peer) {
  ParcelSession& session = sessions_[peer.sessionNumber()];
  if (session.peer == nullptr) session.peer = peer.shared_from_this();
  return session;
}

Result<std::shared_ptr<Fetching>> Parcels::fetch(std::shared_ptr<PeerImpl> peer,
                                                 const std::string& name, FetchOptions options) {
  if (peer->refusesNew()) return peer->drainError("fetch");
  if (!peer->isOpen()) return peer->notReady("fetch");
  VIADUCT_CHECK(peer->has(Feature::kParcels, "fetch"));
  const TakerId id{peer->sessionNumber(), ++sessionOf(*peer).last_fetch};
  WantMessage want{.number = id.number,
                   .name = name,
                   .version = options.version,
                   .layout = options.layout,
                   .exact = options.exact,
                   .owner = options.owner,
                   .group = options.group.name,
                   .size = options.group.size,
                   .rank = options.group.rank,
                   .at_least = options.group.at_least};
  for (const PartInto& into : options.into) want.parts.push_back(into.part);
  const Clock::time_point until =
      options.deadline ? options.deadline->at() : Deadline(basis_.settings().deadline).at();
  auto out = std::make_shared<Fetching>(basis_.shared_from_this(), *this, std::move(peer), id,
                                        std::move(want), std::move(options));
  if (until != Clock::time_point::max())
    out->timer = basis_.engine().poller().at(
        basis_.engine().poller().fromSteady(until), [this, fetching = out.get(), name] {
          giveUp(*fetching, ParcelOutcome::kExpired,
                 overdue("fetch", name, "its deadline has passed"));
        });
  fetches_.emplace(id, out);
  runOf(out);
  return out;
}

void Parcels::giveUp(Fetching& fetching, ParcelOutcome outcome, Error why) {
  const auto found = fetches_.find(fetching.id());
  if (found == fetches_.end()) return;
  fetching.taker.giveUp(outcome, std::move(why));
  runOf(found->second);
}

Status Parcels::heard(PeerImpl& peer, std::span<const std::byte> payload) {
  VIADUCT_TRY(auto message, decodeParcel(payload));
  VIADUCT_CHECK(hear(peer, std::move(message)));
  run();
  return Ok{};
}

Status Parcels::hear(PeerImpl& peer, ParcelMessage message) {
  const std::uint64_t session = peer.sessionNumber();
  if (auto* const want = std::get_if<WantMessage>(&message))
    return hearAsOwner(peer, std::move(*want));
  if (const auto* const report = std::get_if<ReportMessage>(&message))
    return owner_.report(session, *report);
  if (auto* const add = std::get_if<AddMessage>(&message)) return hearAdd(peer, std::move(*add));
  const auto* const close = std::get_if<CloseMessage>(&message);
  if (std::holds_alternative<HasMessage>(message) || std::holds_alternative<LentMessage>(message) ||
      std::holds_alternative<FreedMessage>(message) || (close != nullptr && !close->by_owner))
    return hearOfAdded(peer, message);
  if (std::holds_alternative<LendMessage>(message) || std::holds_alternative<CutMessage>(message) ||
      close != nullptr)
    return hearAsHolder(peer, message);
  const auto number = [&](const auto& m) -> std::uint64_t { return m.number; };
  const TakerId id{session, std::visit(number, message)};
  if (const std::uint64_t last = sessionOf(peer).last_fetch; id.number > last)
    return neverGiven(id.number, last);
  return hearAsTaker(id, std::move(message));
}

Status Parcels::hearAsOwner(PeerImpl& peer, WantMessage want) {
  const std::uint64_t session = sessionOf(peer).peer->sessionNumber();
  std::optional<Error> why;
  if (peer.refusesNew())
    why = peer.drainError("fetch");
  else if (const auto& owner = want.owner; owner && *owner != basis_.id())
    why = otherOwner(want.name, *owner, basis_.id());
  return owner_.want(session, std::move(want), std::move(why));
}

// Ignores messages for a fetch that has ended: the parcel's owner ends the leases that the fetch
// has not taken.
Status Parcels::hearAsTaker(TakerId id, ParcelMessage message) {
  const auto found = fetches_.find(id);
  if (found == fetches_.end()) return Ok{};
  ParcelTaker& taker = found->second->taker;
  if (const auto* const offer = std::get_if<OfferMessage>(&message))
    taker.offered(*offer);
  else if (auto* const ready = std::get_if<ReadyMessage>(&message))
    taker.ready(std::move(*ready));
  else if (auto* const verdict = std::get_if<VerdictMessage>(&message))
    taker.heardVerdict(std::move(verdict->end));
  stepped_.push_back(found->second);
  return Ok{};
}

std::uint64_t Parcels::running(const PeerImpl& peer) const {
  const std::uint64_t session = peer.sessionNumber();
  std::uint64_t out = owner_.running(session);
  for (auto at = fetches_.lower_bound({session, 0});
       at != fetches_.end() && at->first.session == session; ++at)
    if (at->second->taker.isOffered()) ++out;
  return out;
}

void Parcels::sessionOver(PeerImpl& peer, const Error& why) {
  const std::uint64_t session = peer.sessionNumber();
  for (auto at = fetches_.lower_bound({session, 0});
       at != fetches_.end() && at->first.session == session; ++at) {
    at->second->taker.ownerLost(why);
    stepped_.push_back(at->second);
  }
  sessions_.erase(session);
  owner_.sessionOver(session, why);
  holderLost(session);
  ownerLost(session, why);
  run();
}

// An action of a fetch from the agent itself calls run() again. The first call carries out all.
void Parcels::run() {
  if (std::exchange(running_, true)) return;
  while (true) {
    auto actions = owner_.takeActions();
    auto stepped = std::exchange(stepped_, {});
    if (actions.empty() && stepped.empty()) break;
    for (OwnerAction& action : actions) std::visit([this](auto& one) { run(one); }, action);
    for (const auto& fetching : stepped) runOf(fetching);
  }
  running_ = false;
}

void Parcels::run(TellTaker& tell) {
  if (const auto to = sessions_.find(tell.session); to != sessions_.end())
    to->second.peer->tellParcel(encodeParcel(tell.message));
}

void Parcels::run(LendPart& lend) {
  const auto to = sessions_.find(lend.taker.session);
  if (to == sessions_.end())
    return owner_.lendFailed(lend.taker, lend.part,
                             {.code = Code::kPeerLost,
                              .operation = "lease",
                              .detail = "the session with the consumer is over"});
  if (lend.holder != 0) return askHolder(lend);
  const std::shared_ptr<PeerImpl> peer = to->second.peer;
  auto ready =
      lendPart({.taker = lend.taker, .part = lend.part}, publications_.at(lend.parcel), peer);
  if (ready)
    peer->tellParcel(encodeParcel(*std::move(ready)));
  else
    owner_.lendFailed(lend.taker, lend.part, std::move(ready).error());
}

Result<ReadyMessage> Parcels::lendPart(const LentKey& key,
                                       const std::shared_ptr<Publication>& publication,
                                       const std::shared_ptr<PeerImpl>& peer) {
  const HeldPart& part = publication->parts.at(key.part);
  auto on_end = [basis = basis_.shared_from_this(), this, key](LeaseState) {
    const auto held = basis->hold();
    leaseOver(key);
  };
  VIADUCT_TRY(auto lease,
              peer->leases().lend(
                  part.taken, {.duration = Duration::max(), .on_end = std::move(on_end)}, true));
  ReadyMessage ready{.number = key.taker.number,
                     .part = key.part,
                     .ticket = peer->leases().ticketOf(*lease),
                     .digests = part.digests};
  lent_[key] = {.peer = peer, .lease = std::move(lease), .publication = publication};
  return ready;
}

void Parcels::run(CutTaker& cut) {
  if (cut.holder == 0) return cutLeases(0, cut.taker);
  const auto number = number_of_.find({cut.holder, cut.parcel});
  const auto holder = sessions_.find(cut.holder);
  if (number != number_of_.end() && holder != sessions_.end())
    holder->second.peer->tellParcel(encodeParcel(CutMessage{number->second, cut.taker}));
}

void Parcels::cutLeases(std::uint64_t owner, TakerId taker) {
  for (auto at = lent_.lower_bound({owner, taker, {}});
       at != lent_.end() && at->first.owner == owner && at->first.taker == taker; ++at)
    at->second.peer->leases().endLent(*at->second.lease, LeaseState::kRevoked);
}

// A parcel that only other ranks have published has no publication here.
void Parcels::run(GroupOver& over) {
  const auto found = publications_.find(over.parcel);
  if (found == publications_.end()) return;
  Publication& publication = *found->second;
  ++publication.taken;
  changed(publication.watchers);
  if (publication.options.on_taken)
    basis_.owe([told = publication.options.on_taken, group = std::move(over.group),
                end = std::move(over.end)] { told(group, end); });
}

void Parcels::run(ParcelOver& over) {
  tellHolders(over);
  if (const auto publication = publications_.extract(over.parcel))
    publicationOver(*publication.mapped(), over.end);
}

void Parcels::publicationOver(Publication& publication, const ParcelEnd& end) {
  publication.end = end;
  publication.parts.clear();
  basis_.engine().poller().forgetTimer(publication.timer);
  changed(publication.watchers);
  if (publication.options.on_end)
    basis_.owe([told = std::move(publication.options.on_end), end] { told(end); });
}

void Parcels::runOf(const std::shared_ptr<Fetching>& fetching) {
  for (TakerAction& action : fetching->taker.takeActions()) {
    if (auto* const tell = std::get_if<TellOwner>(&action)) {
      if (sessions_.contains(fetching->id().session))
        fetching->peer()->tellParcel(encodeParcel(tell->message));
    } else if (auto* const read = std::get_if<ReadPart>(&action)) {
      begin(fetching, std::move(read->ready));
    } else if (std::holds_alternative<CancelReads>(action)) {
      cancelReads(fetching);
    } else {
      over(*fetching, std::move(std::get<FetchOver>(action).end));
    }
  }
}

void Parcels::begin(const std::shared_ptr<Fetching>& fetching, ReadyMessage ready) {
  const ParcelPart part = ready.part;
  PartRead& read = fetching->reads[part];
  const auto borrowed = [&]() -> Status {
    if (!ready.digests.empty()) {
      VIADUCT_TRY(read.digests, decodeDigests(ready.digests));
    }
    VIADUCT_TRY(auto ticket, LeaseTicket::decode(ready.ticket));
    VIADUCT_TRY(const auto holder, holderOf(*fetching->peer(), ready.holder));
    VIADUCT_TRY(read.lease, holder->leases().borrow(std::move(ticket), {}));
    return Ok{};
  }();
  if (!borrowed)
    return basis_.owe(
        [this, fetching, part, why = borrowed.error()] { readEnded(fetching, part, why); });
  read.bytes = bytesToRead(fetching->options, part, read.lease->blocks().bytes());
  HolderReads& holder = fetching->holders[&read.lease->peer()];
  holder.queue.push_back(part);
  startReads(fetching, holder);
}

// Reads that run at once share the rails and all end late, but the first parts are to be usable
// early. So only as many run as keep the rails busy. A read makes room and plans without the lock,
// so a callback does that.
void Parcels::startReads(const std::shared_ptr<Fetching>& fetching, HolderReads& holder) {
  while (holder.next < holder.queue.size() &&
         (holder.running < kEnoughParts || holder.running_bytes < kEnoughBytes)) {
    const ParcelPart part = holder.queue[holder.next++];
    PartRead& read = fetching->reads.at(part);
    read.running_at = &holder;
    ++holder.running;
    holder.running_bytes += read.bytes;
    basis_.owe([this, fetching, part] { this->read(fetching, part); });
  }
}

void Parcels::cancelReads(const std::shared_ptr<Fetching>& fetching) {
  for (auto& [part, read] : fetching->reads) {
    read.cancelled = true;
    if (read.transfer) read.transfer->cancel();
  }
  for (auto& [peer, holder] : fetching->holders)
    for (; holder.next < holder.queue.size(); ++holder.next)
      basis_.owe([this, fetching, part = holder.queue[holder.next]] {
        readEnded(fetching, part, cancelledRead(part));
      });
}

void Parcels::read(const std::shared_ptr<Fetching>& fetching, ParcelPart part) {
  if (const Status planned = plan(*fetching, part); !planned)
    return readEnded(fetching, part, planned.error());
  std::shared_ptr<TransferImpl> transfer;  // null: all blocks are here already
  std::vector<Digest> digests;
  std::optional<Error> why;
  {
    const auto held = basis_.hold();
    PartRead& reading = fetching->reads.at(part);
    transfer = reading.transfer;
    digests = std::move(reading.digests);
    if (reading.cancelled) why = cancelledRead(part);
  }
  if (why || transfer == nullptr) return readEnded(fetching, part, why);
  // The fetch has a deadline of its own, and cancels the read.
  if (const Status posted = transfer->post({.deadline = Deadline::never(), .digests = digests});
      !posted)
    return readEnded(fetching, part, posted.error());
  {
    const auto held = basis_.hold();
    PartRead& reading = fetching->reads.at(part);
    if (transfer->running()) {
      reading.watcher = std::make_shared<ReadWatcher>(
          basis_, [this, fetching, part] { readEnded(fetching, part, std::nullopt); });
      transfer->watchers().add(reading.watcher);
      if (reading.cancelled) transfer->cancel();
      return;
    }
  }
  readEnded(fetching, part, std::nullopt);  // the posting thread has copied all of it
}

Status Parcels::plan(Fetching& fetching, ParcelPart part) {
  auto held = basis_.hold();
  const std::shared_ptr<HeldLease> lease = fetching.reads.at(part).lease;
  const std::uint64_t version = fetching.taker.version();
  std::vector<Digest> digests = std::move(fetching.reads.at(part).digests);
  held.unlock();
  VIADUCT_TRY(PartInto into,
              intoOf(fetching.options,
                     {.part = part, .version = version, .bytes = lease->blocks().bytes()}));
  VIADUCT_TRY(PartCopy copy, copyOf(lease->blocks(), std::move(digests), std::move(into)));
  if (copy.there.blocks.count() == 0) return Ok{};
  held.lock();
  VIADUCT_CHECK(basis_.usable("fetch"));
  auto transfer = std::make_shared<TransferImpl>(
      traffic_, lease->sharedPeer(), OpKind::kRead, std::move(copy.here), std::move(copy.there),
      TransferOptions{.require = fetching.options.require, .priority = fetching.options.priority},
      lease);
  VIADUCT_CHECK(transfer->plan(held));
  PartRead& read = fetching.reads.at(part);
  read.transfer = std::move(transfer);
  read.digests = std::move(copy.digests);
  return Ok{};
}

void Parcels::readEnded(const std::shared_ptr<Fetching>& fetching, ParcelPart part,
                        std::optional<Error> why) {
  PartRead ended;
  {
    const auto held = basis_.hold();
    ended = std::move(fetching->reads.extract(part).mapped());
    if (!why && ended.transfer && ended.transfer->state() != TransferState::kDone)
      why = ended.transfer->result().error.value_or(cancelledRead(part));
    if (ended.lease) ended.lease->peer().leases().giveBack(*ended.lease);
    fetching->taker.readEnded(part, std::move(why));
    changed(fetching->watchers);
    runOf(fetching);
    if (HolderReads* const holder = ended.running_at) {
      --holder->running;
      holder->running_bytes -= ended.bytes;
      startReads(fetching, *holder);
    }
    run();
  }
  // Destroys the transfer here, because ~Transfer takes the lock.
  if (ended.transfer) const Transfer last(std::move(ended.transfer));
}

void Parcels::over(Fetching& fetching, ParcelEnd end) {
  fetching.end = end;
  basis_.engine().poller().forgetTimer(fetching.timer);
  changed(fetching.watchers);
  if (fetching.options.on_end)
    basis_.owe([told = fetching.options.on_end, end = std::move(end)] { told(end); });
  fetches_.erase(fetching.id());
}

// After the loss of the peer, the blocks are free once the peer has left a copy.
void Parcels::leaseOver(const LentKey& key) {
  const auto found = lent_.find(key);
  if (found == lent_.end()) return;
  if (found->second.lease->state() == LeaseState::kPeerLost && !found->second.peer->settled()) {
    basis_.engine().poller().at(basis_.now() + kLookEvery, [this, key] { leaseOver(key); });
    return;
  }
  const std::shared_ptr<Publication> publication = std::move(found->second.publication);
  lent_.erase(found);
  if (key.owner == 0) {
    owner_.leaseEnded(key.taker, key.part);
  } else {
    if (sessions_.contains(key.owner))
      publication->owner->tellParcel(
          encodeParcel(FreedMessage{publication->number, key.part, key.taker}));
    endJoined(publication);
  }
  run();
}

void Parcels::refuseWaiting(const Error& why) {
  owner_.refuseWaiting(why);
  run();
}

// The handles keep the agent alive, so the agent must not keep the objects behind them.
void Parcels::close() {
  for (const auto& [id, publication] : std::map(publications_))
    owner_.end(id, {.outcome = ParcelOutcome::kCancelled,
                    .why = Error{.code = Code::kPeerLost,
                                 .operation = "parcel",
                                 .detail = "the publisher's agent is closed"}});
  run();
  publications_.clear();
  joined_.clear();
  lent_.clear();
}

void Parcels::changed(base::Watchers& watchers) {
  basis_.engine().changed();
  basis_.ringBell();
  watchers.tell();
}

}  // namespace viaduct::agent
