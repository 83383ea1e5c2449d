// Implements NixlAgent's calls about other agents, their metadata and notifications.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/environment.h"
#include "nixl/agent.h"
#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

// Two calls of get_new_notifs() within this time belong to a polling loop.
constexpr std::chrono::microseconds kLoopsWithin{50};
// The most bytes of partial metadata that are read from a peer.
constexpr std::uint64_t kMostPartBytes = std::uint64_t{8} << 20U;

std::string partLabel(const std::string& label) { return "nixlpart:" + label; }

// Reads VIADUCT_NIXL_GRANT, which limits other agents here, whether they dial or are dialed. No
// grant: there is no limit.
Result<std::optional<Grant>> grantHere() {
  const std::string access = base::variableText("VIADUCT_NIXL_GRANT");
  if (access.empty() || access == "all") return std::optional<Grant>();
  if (access == "read") return std::optional(Grant{.access = CardAccess::kRead});
  if (access == "write") return std::optional(Grant{.access = CardAccess::kWrite});
  return Error{.code = Code::kInvalid,
               .operation = "read the grant",
               .detail = "VIADUCT_NIXL_GRANT=" + access,
               .remedy = "set it to read, write or all"};
}

}  // namespace

Metadata NixlAgent::describe(std::vector<Region> regions, bool with_card, bool partial) const {
  Metadata metadata{.name = name_, .agent = id_, .partial = partial, .regions = std::move(regions)};
  if (with_card) {
    const auto grant = valueOf(grantHere());
    metadata.card = grant ? valueOf(agent_->card(*grant)) : agent_->card();
    metadata.card->pins.clear();  // the regions replace the pins; the session announces later pins
  }
  return metadata;
}

std::shared_ptr<const std::string> NixlAgent::metadata() {
  need("get_agent_metadata");
  if (!metadata_)
    metadata_ = std::make_shared<const std::string>(describe(regions(), true, false).encode());
  return metadata_;
}

std::string NixlAgent::partialMetadata(const RegistrationList& list, bool with_card) {
  std::vector<Region> some;
  if (list.rows->count() != 0) {
    requireAddresses(list.memory, "get_partial_agent_metadata");
    for (const MemoryRange& range : rangesOf(list, "get_partial_agent_metadata")) {
      const auto found = registrations_.find(range);
      if (found == registrations_.end())
        fail(Outcome::kNotFound,
             fmt::format("get_partial_agent_metadata: memory at {:#x}, {} bytes is not registered; "
                         "register it first",
                         range.address, range.bytes));
      some.push_back({range, found->second.serial});
    }
  }
  return describe(std::move(some), with_card, true).encode();
}

const std::string& NixlAgent::addRemote(std::string blob) {
  need("add_remote_agent");
  if (const auto known = remotes_.find(std::string(Metadata::nameOf(blob)));
      known != remotes_.end() && known->second->blob == blob)
    return known->second->name;
  Metadata metadata = valueOf(Metadata::decode(blob));
  if (metadata.name == name_) return name_;
  forgetRemoved();
  const auto known = remotes_.find(metadata.name);
  const bool same_life = known != remotes_.end() && known->second->agent == metadata.agent;
  auto fresh = same_life ? std::make_shared<Remote>(*known->second) : std::make_shared<Remote>();
  fresh->name = metadata.name;
  fresh->agent = metadata.agent;
  fresh->looked_at_pins = false;
  const auto before = std::exchange(fresh->regions, std::move(metadata.regions));
  if (metadata.partial) fresh->addRegions(before);
  if (metadata.card)
    startConnecting(*fresh, valueOf(agent_->connect(*metadata.card, valueOf(grantHere()))),
                    same_life);
  if (fresh->peer) fresh->loaded_epoch = fresh->peer->epoch();
  fresh->setMemory(std::make_shared<const core::PinMap>(mapOf(fresh->regions)));
  fresh->blob = metadata.partial ? std::string() : std::move(blob);
  remotes_[fresh->name] = fresh;
  return fresh->name;
}

// Restarts the time limit for connecting, unless the agent is connected already.
void NixlAgent::startConnecting(Remote& remote, Peer peer, bool same_life) {
  const bool again = same_life && remote.peer && peer.state() == PeerState::kReady;
  remote.peer = std::move(peer);
  if (again) return;
  remote.connecting_since = Clock::now();
  remote.epoch_before = remote.peer->epoch();
  remote.was_connected = false;
}

void NixlAgent::removeRemote(const std::string& name) {
  const auto found = remotes_.find(name);
  if (found == remotes_.end())
    fail(Outcome::kNotFound, fmt::format("no metadata of an agent named {} was added", name));
  // The other end may still use the session, so forgetRemoved() drops the peer only after the
  // session is lost.
  if (found->second->peer) removed_.push_back(*found->second->peer);
  remotes_.erase(found);
  forgetRemoved();
}

void NixlAgent::forgetRemoved() {
  std::erase_if(removed_, [this](const Peer& peer) {
    if (remotes_.contains(peer.name())) return true;
    const PeerState state = peer.state();
    if (state == PeerState::kReady || state == PeerState::kDraining) return false;
    peer.forget();
    return true;
  });
}

bool NixlAgent::knowsRemote(const std::string& name, const TransferList& list) {
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return false;
  if (list.rows->count() == 0) return true;
  return hasAddresses(list.memory) &&
         Prepared::make(*list.rows, *found->second->memory, name).has_value();
}

void NixlAgent::offerPart(const std::string& label, std::string blob) {
  need("send_partial_agent_metadata");
  auto kept = std::make_unique<const std::string>(std::move(blob));
  auto pin = valueOf(unlocked(lock_, [&] {
    const auto address = reinterpret_cast<std::uintptr_t>(kept->data());
    return agent_->pin({.address = address, .bytes = kept->size()}, partLabel(label));
  }));
  auto before = parts_.extract(label);
  parts_.insert_or_assign(label, OfferedPart{std::move(kept), std::move(pin)});
  const Unlocked unlocked(lock_);
  if (before) static_cast<void>(before.mapped().pin.release());
}

void NixlAgent::withdrawParts() {
  need("invalidate_local_metadata");
  auto parts = std::exchange(parts_, {});
  const Unlocked unlocked(lock_);
  for (auto& [label, part] : parts) static_cast<void>(part.pin.release());
  parts.clear();
}

// Reads the bytes that the peer has pinned under `label`.
Result<std::string> NixlAgent::readPart(const Peer& peer, const std::string& label,
                                        Deadline until) {
  VIADUCT_TRY(const PinInfo there, peer.waitPin(partLabel(label), until));
  if (there.bytes == 0 || there.bytes > kMostPartBytes)
    return Error{.code = Code::kInvalid,
                 .operation = "fetch_remote_metadata",
                 .detail = fmt::format("the part {} has {} bytes", label, there.bytes),
                 .peer = peer.name()};
  VIADUCT_TRY(const Pin here, agent_->allocate(there.bytes));
  const auto whole_of = [&](std::uint64_t address) {
    return Blocks::strided({.base = address, .bytes = there.bytes, .count = 1});
  };
  VIADUCT_TRY(Blocks into, whole_of(here.info().address));
  VIADUCT_TRY(Blocks from, whole_of(there.address));
  VIADUCT_TRY(Transfer transfer, agent_->plan(OpKind::kRead, peer, {into}, {from}));
  VIADUCT_CHECK(transfer.post({.deadline = until}));
  VIADUCT_CHECK(transfer.wait());
  return std::string(reinterpret_cast<const char*>(here.data()), there.bytes);
}

// Reads again if the owner has replaced the part meanwhile: the news of the new pin follows
// shortly.
Result<std::string> NixlAgent::readNewestPart(const Peer& peer, const std::string& label,
                                              Deadline until) {
  for (;;) {
    auto part = readPart(peer, label, until);
    if (part || part.error().code != Code::kDenied || until.passed()) return part;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void NixlAgent::findRemote(const std::string& name, const std::string& label) {
  need("fetch_remote_metadata");
  std::string part;
  Peer peer = valueOf(unlocked(lock_, [&]() -> Result<Peer> {
    const Deadline until = kReachWithin;
    VIADUCT_TRY(Peer found, agent_->find(name, until));
    VIADUCT_CHECK(found.ready(until));
    if (!label.empty()) {
      VIADUCT_TRY(part, readNewestPart(found, label, until));
    }
    return found;
  }));
  if (!label.empty()) return static_cast<void>(addRemote(std::move(part)));
  auto fresh = std::make_shared<Remote>();
  fresh->name = name;
  for (const PinInfo& pin : peer.pins())
    if (const auto region = regionOf(pin)) {
      fresh->agent = agentOf(pin);
      fresh->regions.push_back(*region);
    }
  fresh->loaded_epoch = peer.epoch();
  startConnecting(*fresh, std::move(peer), false);
  fresh->was_connected = true;
  fresh->setMemory(std::make_shared<const core::PinMap>(mapOf(fresh->regions)));
  remotes_[name] = std::move(fresh);
}

void Remote::addRegions(const std::vector<Region>& more) {
  std::set<std::uint32_t> serials;
  for (const Region& region : regions) serials.insert(region.serial);
  for (const Region& region : more)
    if (serials.insert(region.serial).second) regions.push_back(region);
}

void Remote::setMemory(std::shared_ptr<const core::PinMap> registered) {
  if (memory == registered) return;
  memory = std::move(registered);
  newest = 0;
  for (const core::PinRange& range : memory->ranges()) newest = std::max(newest, range.slot);
}

// The calls about other agents follow.

std::shared_ptr<Remote> NixlAgent::self() {
  if (!self_) {
    auto fresh = std::make_shared<Remote>();
    fresh->name = name_;
    fresh->agent = id_;
    fresh->is_self = true;
    startConnecting(*fresh, valueOf(agent_->self()), false);
    self_ = std::move(fresh);
  }
  self_->setMemory(ownMemory());
  return self_;
}

std::shared_ptr<Remote> NixlAgent::remoteOf(const std::string& name) {
  if (const auto found = remotes_.find(name); found != remotes_.end()) return found->second;
  if (name == name_) return self();
  fail(Outcome::kNotFound,
       fmt::format("no metadata of an agent named {} was added; pass that agent's "
                   "get_agent_metadata() to add_remote_agent()",
                   name));
}

const Peer& NixlAgent::peerOf(Remote& remote) {
  if (!remote.peer) {
    auto known = agent_->peer(remote.name);
    if (!known)
      fail(Outcome::kRemoteDisconnect,
           fmt::format("the metadata of agent {} does not say how to reach it; add its full "
                       "metadata, or partial metadata with inc_conn_info=True",
                       remote.name));
    remote.peer = *std::move(known);
  }
  return *remote.peer;
}

// Refuses an agent that was lost, or was not reached in time. Otherwise returns the deadline for
// reaching the agent in the background, or nothing if it is ready.
std::optional<Deadline> NixlAgent::reachOf(Remote& remote) {
  const Peer& peer = peerOf(remote);
  const PeerState state = peer.state();
  remote.was_connected = remote.was_connected || peer.epoch() != remote.epoch_before;
  if (state == PeerState::kReady) return std::nullopt;
  const auto now = Clock::now();
  auto until = remote.connecting_since + kReachWithin;
  if (remote.was_connected)
    until = state == PeerState::kConnecting ? now + kReachWithin : Clock::time_point::min();
  if (until > now) return until;
  check(unlocked(lock_, [&] { return peer.ready(now); }));
  return std::nullopt;
}

// Refuses an agent that was restarted under its old name, because its memory differs from the old
// metadata.
void NixlAgent::checkLife(Remote& remote) {
  if (remote.is_self || remote.agent == AgentId{}) return;
  const std::uint64_t epoch = remote.peer->epoch();
  if (epoch == remote.known_epoch || remote.peer->state() != PeerState::kReady) return;
  const auto pins = remote.peer->pins();
  const std::string prefix = labelPrefix(remote.agent);
  const bool other =
      std::ranges::any_of(pins, [](const PinInfo& pin) { return pin.label.starts_with("nixl-"); });
  const bool same =
      std::ranges::any_of(pins, [&](const PinInfo& pin) { return pin.label.starts_with(prefix); });
  if (other && !same)
    fail(Outcome::kRemoteDisconnect,
         fmt::format("agent {} was restarted since its metadata was made; add its new metadata and "
                     "prepare its descriptors again",
                     remote.name));
  if (same) remote.known_epoch = epoch;
}

Peer NixlAgent::connection(const std::string& name) { return peerOf(*remoteOf(name)); }

// Notes

// In a loop of calls, polling is faster than waking the progress thread, and releases the lock for
// other threads. A single call relies on the progress thread and keeps the lock.
bool NixlAgent::isLoopOverNotes() {
  const auto now = Clock::now();
  return now - std::exchange(asked_for_notes_, now) < kLoopsWithin;
}

std::vector<Note> NixlAgent::takeNotes() {
  need("get_new_notifs");
  std::vector<Note> notes;
  auto first = agent_->takeNote();
  if (!first && isLoopOverNotes()) {
    const Unlocked unlocked(lock_);
    agent_->poll();
  }
  for (auto note = first ? std::move(first) : agent_->takeNote(); note; note = agent_->takeNote())
    notes.push_back(*std::move(note));
  return notes;
}

void NixlAgent::sendNote(const std::string& name, const std::string& note) {
  const auto found = remotes_.find(name);
  const auto remote = found != remotes_.end() ? found->second : name == name_ ? self() : nullptr;
  if (remote) {
    const auto until = reachOf(*remote);
    return check(until ? remote->peer->note(base::bytesOf(note), *until)
                       : remote->peer->note(note));
  }
  if (std::ranges::any_of(removed_, [&](const Peer& peer) { return peer.name() == name; }))
    fail(Outcome::kNotFound,
         fmt::format("send_notif: agent {} was removed; add its metadata again", name));
  auto peer = agent_->peer(name);  // a peer that connected to this agent
  if (!peer) fail(peer.error());
  check(peer->note(note));
}

}  // namespace viaduct::nixl
