#include <fmt/format.h>
#include <viaduct/agent.h>

#include <cerrno>
#include <utility>

#include "agent/agent_impl.h"
#include "agent/parcels/part_slice.h"
#include "agent/peers/lease_impl.h"
#include "agent/peers/peer_impl.h"
#include "agent/pin_impl.h"
#include "agent/session/grants.h"
#include "agent/session/lease_ticket.h"
#include "agent/traffic/transfer_impl.h"
#include "base/cache_lines.h"
#include "base/sizes.h"
#include "host/memory.h"

namespace viaduct {
namespace {

// The kernel lets a file grow beyond the memory, and kills a process that touches the excess. Below
// 1 MiB the check is not worth reading the files that it needs. Huge pages are reserved at
// allocation, which fails by itself if they are missing.
Status checkRoom(std::uint64_t bytes, const AllocateOptions& options) {
  if (bytes < (1U << 20U) || options.huge_pages) return Ok{};
  const std::uint64_t memory = host::availableMemory();
  if (memory == 0) return Ok{};  // the system does not tell
  const std::uint64_t room = memory + host::freeSwap();
  if (bytes <= room) return Ok{};
  return Error{.code = Code::kExhausted,
               .operation = "allocate",
               .detail = fmt::format("{} do not fit: this process may allocate {} more",
                                     base::roundedSize(bytes), base::roundedSize(room)),
               .cause = "too little free memory and swap on this host, or a limit of the cgroup",
               .remedy = fmt::format("allocate at most {}, or raise the memory limit of the "
                                     "container or service",
                                     base::roundedSize(room))};
}

using agent::AgentImpl;
using agent::PinImpl;

Result<Pin> pinChecked(const std::shared_ptr<AgentImpl>& agent, const Segment& memory,
                       std::string label) {
  VIADUCT_TRY(const Segment checked, agent::checkedSegment(memory));
  const auto held = agent->hold();
  VIADUCT_CHECK(agent->usable("pin"));
  VIADUCT_TRY(auto info, agent->peers().pin(checked, std::move(label)));
  return Pin(
      std::make_unique<PinImpl>(agent, std::move(info), base::SharedMemory(),
                                checked.kind == MemoryKind::kDevice ? checked.opened : nullptr));
}

// Returns the peer that was known before if `peer` is that agent, dialed by another address.
Result<std::shared_ptr<agent::PeerImpl>> ownPeer(const AgentImpl& agent,
                                                 std::shared_ptr<agent::PeerImpl> peer,
                                                 const char* operation) {
  while (peer->same_as) peer = peer->same_as;
  if (&peer->basis() == &agent) return peer;
  return Error{.code = Code::kInvalid,
               .operation = operation,
               .detail = "the peer belongs to another agent",
               .peer = peer->name(),
               .remedy = "pass a Peer that this agent returned"};
}

}  // namespace

Agent::Agent(std::shared_ptr<AgentImpl> impl) : impl_(std::move(impl)) {}
Agent::Agent(Agent&&) noexcept = default;

Agent& Agent::operator=(Agent&& other) noexcept {
  Agent old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Agent::~Agent() {
  if (impl_) close();
}

void Agent::close() { impl_->shutdown(); }

Result<std::vector<DrainLeft>> Agent::drain(Deadline until) { return impl_->drain(until); }
Status Agent::undrain() { return impl_->undrain(); }
DrainState Agent::drainState() const { return impl_->drainState(); }

Result<Agent> Agent::open() {
  VIADUCT_TRY(const Settings settings, settingsFromEnvironment());
  return open(settings);
}

Result<Agent> Agent::open(const Settings& settings) {
  VIADUCT_TRY(auto impl, AgentImpl::open(settings));
  return Agent(std::move(impl));
}

const std::string& Agent::name() const { return impl_->settings().name; }

std::vector<BackendInfo> Agent::backends() const {
  const auto held = impl_->hold();
  return impl_->backends().infos();
}

Result<Pin> Agent::allocate(std::uint64_t bytes, const AllocateOptions& options) {
  VIADUCT_CHECK(impl_->usable("allocate"));
  if (options.device) {
    VIADUCT_TRY(const Segment memory, impl_->allocateAt(*options.device, bytes));
    return pinChecked(impl_, memory, options.label);
  }
  VIADUCT_CHECK(checkRoom(bytes, options));
  VIADUCT_TRY(auto memory, base::SharedMemory::allocate(bytes, {.huge_pages = options.huge_pages}));
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("allocate"));  // another thread may have closed the agent
  VIADUCT_TRY(auto info, impl_->peers().pin(memory.segment(), options.label));
  return Pin(std::make_unique<PinImpl>(impl_, std::move(info), std::move(memory)));
}

Result<Pin> Agent::pin(const Segment& memory, std::string label) {
  VIADUCT_TRY(const Segment found, impl_->opened(memory));
  return pinChecked(impl_, found, std::move(label));
}

Card Agent::card() const {
  const auto held = impl_->hold();
  return impl_->peers().card();
}

Result<Card> Agent::card(Grant grant) const {
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("export a Card"));
  return impl_->peers().card(std::move(grant));
}

Result<std::vector<std::byte>> Agent::exportCard(Grant grant) const {
  VIADUCT_TRY(const Card made, card(std::move(grant)));
  return made.encode();
}

Status Agent::revokeCard(const CardId& id,
                         std::optional<std::chrono::system_clock::time_point> until) {
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("revoke a Card"));
  return impl_->peers().revoke(id, until);
}

Status Agent::revokeCard(const Card& card) {
  if (const auto id = card.id()) return revokeCard(*id, agent::endOf(card.grants));
  return Error{.code = Code::kInvalid,
               .operation = "revoke a Card",
               .detail = "the Card grants all: its secret is the agent's own",
               .remedy = "close the agent, or give out Cards with a grant"};
}

Status Agent::revokeCards() {
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("revoke Cards"));
  return impl_->peers().revokeAll();
}

Result<Peer> Agent::importCard(std::span<const std::byte> blob, std::optional<Grant> mine) {
  VIADUCT_TRY(const Card card, Card::decode(blob));
  return connect(card, std::move(mine));
}

Result<Peer> Agent::connect(const Card& card, std::optional<Grant> mine) {
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("connect"));
  std::vector<Grant> grants;
  if (mine && (mine->until || !mine->name.empty()))
    return Error{.code = Code::kInvalid,
                 .operation = "connect",
                 .detail = "a grant to a peer that is dialed has no end and no name",
                 .peer = card.name,
                 .remedy = "give pins and access, and forget the peer at the end"};
  if (mine) {
    VIADUCT_CHECK(agent::prepare(*mine, impl_->wallNow()));
    grants.push_back(*std::move(mine));
  }
  VIADUCT_TRY(auto peer, impl_->peers().connect(card, std::move(grants)));
  impl_->engine().takeOverSoon(impl_->now());
  return Peer(std::move(peer));
}

Result<Peer> Agent::connect(std::string_view host_port) {
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("connect"));
  VIADUCT_TRY(auto peer, impl_->peers().connectTo(host_port));
  impl_->engine().takeOverSoon(impl_->now());
  return Peer(std::move(peer));
}

Result<Peer> Agent::find(std::string_view name, Deadline until) {
  VIADUCT_CHECK(impl_->usable("find"));
  VIADUCT_TRY(const Card card, impl_->find(std::string(name), until));
  return connect(card);
}

Result<Peer> Agent::self() {
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("self"));
  VIADUCT_TRY(auto peer, impl_->peers().self());
  return Peer(std::move(peer));
}

std::vector<Peer> Agent::peers() const {
  const auto held = impl_->hold();
  std::vector<Peer> out;
  for (const auto& peer : impl_->peers().all()) out.emplace_back(peer);
  return out;
}

Result<Peer> Agent::peer(std::string_view name) const {
  const auto held = impl_->hold();
  if (auto found = impl_->peers().find(name)) return Peer(std::move(found));
  return Error{.code = Code::kNotFound,
               .operation = "peer",
               .detail = "no peer with that name is known",
               .peer = std::string(name),
               .remedy = "connect() to it, or wait until it connects"};
}

Result<Transfer> Agent::plan(OpKind kind, const Peer& peer, const Selection& local,
                             const Selection& remote, TransferOptions options) {
  auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("plan"));
  VIADUCT_TRY(auto impl, ownPeer(*impl_, peer.impl_, "plan"));
  auto transfer = std::allocate_shared<agent::TransferImpl>(base::CacheLines<agent::TransferImpl>(),
                                                            impl_->traffic(), std::move(impl), kind,
                                                            local, remote, std::move(options));
  if (transfer->peer().refusesNew()) return transfer->peer().drainError("plan");
  if (!transfer->awaitsPeer()) VIADUCT_CHECK(transfer->plan(held));
  return Transfer(std::move(transfer));
}

Result<Transfer> Agent::plan(OpKind kind, const BorrowedLease& lease, const Selection& local,
                             Indices positions, TransferOptions options) {
  auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("plan"));
  const auto& lent = lease.impl_;
  VIADUCT_TRY(auto peer, ownPeer(*impl_, lent->sharedPeer(), "plan"));
  if (kind == OpKind::kWrite && lent->access() == MemoryAccess::kReadOnly)
    return Error{.code = Code::kDenied,
                 .operation = "plan",
                 .detail = fmt::format("lease {} is for reading", lent->number()),
                 .peer = peer->name(),
                 .remedy = "get a lease for writing from the owner"};
  if (!lent->isLive()) return lent->refusal("plan");
  auto transfer = std::allocate_shared<agent::TransferImpl>(
      base::CacheLines<agent::TransferImpl>(), impl_->traffic(), std::move(peer), kind, local,
      Selection{lent->blocks(), std::move(positions)}, std::move(options), lent);
  VIADUCT_CHECK(transfer->plan(held));
  return Transfer(std::move(transfer));
}

Result<Lease> Agent::lease(const Peer& peer, const Selection& blocks, LeaseOptions options) {
  VIADUCT_TRY(auto taken, agent::takenBlocks(blocks));
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("lease"));
  VIADUCT_TRY(const auto impl, ownPeer(*impl_, peer.impl_, "lease"));
  VIADUCT_TRY(auto lent, impl->leases().lend(std::move(taken), std::move(options)));
  return Lease(std::move(lent));
}

Result<BorrowedLease> Agent::borrow(const Peer& peer, std::span<const std::byte> ticket,
                                    std::function<void(LeaseState)> on_end) {
  VIADUCT_TRY(auto read, agent::LeaseTicket::decode(ticket));
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("borrow"));
  VIADUCT_TRY(const auto impl, ownPeer(*impl_, peer.impl_, "borrow"));
  VIADUCT_TRY(auto lease, impl->leases().borrow(std::move(read), std::move(on_end)));
  return BorrowedLease(std::move(lease));
}

std::optional<Note> Agent::takeNote() {
  const auto held = impl_->hold();
  return impl_->peers().takeNote();
}

Result<Note> Agent::waitNote(Deadline until) {
  VIADUCT_CHECK(impl_->usable("waitNote"));
  auto held = impl_->hold();
  const auto over = [&] { return impl_->peers().hasNote() || impl_->closed(); };
  if (impl_->engine().waitHeld(over, until.at(), &impl_->peers().noteWatchers()))
    if (auto note = impl_->peers().takeNote()) return *std::move(note);
  VIADUCT_CHECK(impl_->usable("waitNote"));
  return Error{.code = Code::kTimeout, .operation = "waitNote", .detail = "no note arrived"};
}

Result<MarkStream> Agent::openMarks(const Peer& peer, MarkStreamOptions options) {
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("open marks"));
  VIADUCT_TRY(const auto impl, ownPeer(*impl_, peer.impl_, "open marks"));
  VIADUCT_TRY(auto stream, impl->openMarks(std::move(options)));
  return MarkStream(std::move(stream));
}

Result<PublishedParcel> Agent::publish(const std::string& name, PublishOptions options) {
  VIADUCT_CHECK(impl_->usable("publish"));
  if (options.at_place) VIADUCT_CHECK(impl_->mayAnnounce(name, options.owner.has_value()));
  const bool at_place = options.at_place;
  auto ready = std::exchange(options.ready, {});
  if (options.parts.empty())
    for (const PublishedPart& part : ready) options.parts.push_back(part.part);
  auto held = impl_->hold();
  if (impl_->peers().drains()) return impl_->peers().drainError("publish");
  std::shared_ptr<agent::PeerImpl> owner;
  if (options.owner) {
    VIADUCT_TRY(owner, ownPeer(*impl_, options.owner->impl_, "publish"));
  }
  VIADUCT_TRY(auto impl, impl_->parcels().publish(name, std::move(options), std::move(owner)));
  held.unlock();
  PublishedParcel parcel(impl);
  for (PublishedPart& part : ready)
    if (!agent::hasPart(*impl, part)) VIADUCT_CHECK(parcel.ready(std::move(part)));
  if (at_place) VIADUCT_CHECK(impl_->announce(*impl, name));
  return parcel;
}

Result<ParcelFetch> Agent::fetch(const Peer& owner, const std::string& name, FetchOptions options) {
  VIADUCT_CHECK(agent::checkFetch(name, options));
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("fetch"));
  VIADUCT_TRY(auto peer, ownPeer(*impl_, owner.impl_, "fetch"));
  VIADUCT_TRY(auto impl, impl_->parcels().fetch(std::move(peer), name, std::move(options)));
  return ParcelFetch(std::move(impl));
}

Result<ParcelFetch> Agent::fetch(const std::string& name, FetchOptions options) {
  VIADUCT_CHECK(agent::checkFetch(name, options));
  if (!options.deadline) options.deadline = Deadline(impl_->settings().deadline);
  VIADUCT_TRY(const ParcelOwnerFound found, findParcel(name, *options.deadline));
  if (!options.owner) options.owner = found.agent;
  return fetch(found.peer, name, std::move(options));
}

Result<ParcelOwnerFound> Agent::findParcel(const std::string& name, Deadline until) {
  VIADUCT_CHECK(impl_->usable("find"));
  VIADUCT_TRY(auto found, impl_->ownerOf(name, until));
  return ParcelOwnerFound{.peer = Peer(std::move(found.peer)), .agent = found.id};
}

Statistics Agent::statistics() const {
  const auto held = impl_->hold();
  return impl_->statistics();
}

bool Agent::poll() { return impl_->usable("poll") && impl_->poll(); }

Result<int> Agent::eventFd() {
  const auto held = impl_->hold();
  VIADUCT_CHECK(impl_->usable("eventFd"));
  return impl_->eventFd();
}

}  // namespace viaduct
