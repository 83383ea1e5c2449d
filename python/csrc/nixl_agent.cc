#include "nixl_agent.h"

#include <fmt/format.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "gil.h"
#include "nixl_status.h"

namespace viaduct::python::nixl {
namespace {

// How long a remote agent may take to be reached, from when its metadata was added. One that was
// lost since then is not waited for: its callers have other work.
constexpr std::chrono::seconds kReachWithin{5};
// How long a session may take to begin, once there is a connection.
constexpr std::chrono::seconds kBeginWithin{1};
// Two questions for notes that are so near each other are of a loop.
constexpr std::chrono::microseconds kLoopsWithin{50};
// How long a registration may take to be announced. A session that is younger than the metadata has
// announced all of it when it begins, but for what was registered in that very moment.
constexpr std::chrono::milliseconds kHearWithin{200};

std::set<NixlAgent*>& openAgents() {
  static std::set<NixlAgent*> agents;
  return agents;
}

// An engine's peers are on other hosts: listen there, unless the operator says where. Who comes in
// needs the secret of the agent's metadata.
Result<Agent> openAgent(const std::string& name) {
  VIADUCT_TRY(Settings settings, settingsFromEnvironment());
  settings.name = name;
  if (const char* const listen = std::getenv("VIADUCT_LISTEN");
      listen != nullptr && *listen != '\0')
    return Agent::open(settings);
  settings.listen = {"0.0.0.0:0", "[::]:0"};
  auto agent = Agent::open(settings);
  if (agent || (agent.error().operation != "socket" && agent.error().operation != "bind"))
    return agent;
  settings.listen = {"0.0.0.0:0"};  // this system has no IPv6
  return Agent::open(settings);
}

Memory memoryOf(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHost:
      return Memory::kDram;
    case MemoryKind::kDevice:
      return Memory::kVram;
    case MemoryKind::kFile:
      return Memory::kFile;
    case MemoryKind::kBlock:
      return Memory::kBlock;
    case MemoryKind::kObject:
      return Memory::kObject;
  }
  return Memory::kDram;
}

// What registrations and transfers can be of.
void requireHost(Memory memory, const char* operation) {
  if (memory == Memory::kDram) return;
  fail(Outcome::kNotSupported,
       fmt::format("{}: {} needs a backend that this release of Viaduct does not have; DRAM works "
                   "(docs/nixl.md)",
                   operation, memoryName(memory)));
}

// The serial in the label of a registration's pin, and the agent's prefix before it.
std::optional<Region> regionOf(const PinInfo& pin) {
  const auto dash = pin.label.rfind('-');
  if (!pin.label.starts_with("nixl-") || dash == std::string::npos) return std::nullopt;
  const unsigned long serial = std::strtoul(pin.label.c_str() + dash + 1, nullptr, 10);
  return Region{.memory = memoryOf(pin.kind),
                .device = pin.device,
                .address = pin.address,
                .bytes = pin.bytes,
                .serial = static_cast<std::uint32_t>(serial)};
}

}  // namespace

NixlAgent::NixlAgent(std::string name, const AgentConfig& config)
    : name_(std::move(name)), telemetry_(config.capture_telemetry) {
  if (name_.empty()) fail(Outcome::kInvalid, "an agent needs a name");
  auto opened = [&] {
    const Unlocked unlocked;
    return openAgent(name_);
  }();
  agent_.emplace(valueOf(std::move(opened)));
  id_ = agent_->card().agent;
  openAgents().insert(this);
}

NixlAgent::~NixlAgent() {
  openAgents().erase(this);
  unlockedFromDestructor([this] {
    if (agent_) agent_->close();
  });
}

void NixlAgent::close() {
  const Unlocked unlocked;
  agent_->close();
}

void closeAgents() {
  for (NixlAgent* const agent : std::set(openAgents())) agent->close();
}

std::vector<Memory> NixlAgent::memories() const {
  std::vector<Memory> out;
  for (const BackendInfo& backend : agent_->backends())
    for (const MemoryKind kind : backend.memory)
      if (backend.open && std::find(out.begin(), out.end(), memoryOf(kind)) == out.end())
        out.push_back(memoryOf(kind));
  return out;
}

// Registrations

std::vector<NixlAgent::Key> NixlAgent::keysOf(const RegistrationList& list,
                                              const char* operation) const {
  requireHost(list.memory, operation);
  std::vector<Key> keys;
  keys.reserve(list.rows->count());
  for (std::size_t row = 0; row < list.rows->count(); ++row) {
    const Extent& extent = list.rows->extents[row];
    keys.emplace_back(list.memory, list.rows->deviceOf(row), extent.address, extent.bytes);
  }
  return keys;
}

void NixlAgent::registerMemory(const RegistrationList& list) {
  const auto keys = keysOf(list, "register_memory");
  // Each gets a pin of its own: memory that is deregistered must be out of reach at once.
  std::vector<Key> known, fresh;
  for (const Key& key : keys) (registrations_.contains(key) ? known : fresh).push_back(key);
  std::vector<Registration> made;
  made.reserve(fresh.size());
  Status status = Ok{};
  {
    const Unlocked unlocked;
    const std::lock_guard one_after_another(registering_);
    for (const Key& key : fresh) {
      const std::uint32_t serial = ++last_serial_;
      auto pin = agent_->pin({.address = std::get<2>(key), .bytes = std::get<3>(key)},
                             labelOf(id_, serial));
      if (!pin) {
        status = std::move(pin).error();
        made.clear();
        break;
      }
      made.push_back({.count = 1, .serial = serial, .pin = *std::move(pin)});
    }
  }
  check(status);
  for (const Key& key : known) {
    const auto found = registrations_.find(key);
    // Another thread has deregistered it just now; its list and this one name the same memory.
    if (found == registrations_.end())
      fail(Outcome::kNotAllowed, "register_memory: another thread deregisters the same memory");
    ++found->second.count;
  }
  std::vector<Registration> twice;  // of what another thread has registered, or the list itself
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto [there, is_new] = registrations_.try_emplace(fresh[i]);
    if (is_new) {
      there->second = std::move(made[i]);
    } else {
      ++there->second.count;
      twice.push_back(std::move(made[i]));
    }
  }
  own_memory_.reset();
  metadata_.reset();
  const Unlocked unlocked;
  twice.clear();
}

void NixlAgent::deregisterMemory(const RegistrationList& list) {
  const auto keys = keysOf(list, "deregister_memory");
  std::map<Key, std::uint64_t> times;
  for (const Key& key : keys) ++times[key];
  for (const auto& [key, count] : times) {
    const auto found = registrations_.find(key);
    if (found == registrations_.end() || found->second.count < count)
      fail(Outcome::kNotFound,
           fmt::format("deregister_memory: {:#x}, {} bytes, device {} is not registered",
                       std::get<2>(key), std::get<3>(key), std::get<1>(key)));
  }
  std::vector<Pin> pins;
  for (const auto& [key, count] : times) {
    const auto found = registrations_.find(key);
    if ((found->second.count -= count) != 0) continue;
    pins.push_back(*std::move(found->second.pin));
    registrations_.erase(found);
  }
  own_memory_.reset();
  metadata_.reset();
  Status status = Ok{};
  {
    const Unlocked unlocked;
    for (Pin& pin : pins)
      if (auto released = pin.release(); !released && status) status = std::move(released);
  }
  check(status);
}

std::vector<Region> NixlAgent::regions() const {
  std::vector<Region> out;
  out.reserve(registrations_.size());
  for (const auto& [key, registration] : registrations_)
    out.push_back({.memory = std::get<0>(key),
                   .device = std::get<1>(key),
                   .address = std::get<2>(key),
                   .bytes = std::get<3>(key),
                   .serial = registration.serial});
  return out;
}

std::shared_ptr<const core::PinMap> NixlAgent::ownMemory() {
  if (!own_memory_) own_memory_ = std::make_shared<const core::PinMap>(hostMemory(regions()));
  return own_memory_;
}

// Metadata

Metadata NixlAgent::describe(std::vector<Region> regions, bool with_card) const {
  Metadata metadata{.name = name_, .agent = id_, .card = {}, .regions = std::move(regions)};
  if (with_card) {
    metadata.card = agent_->card();
    metadata.card->pins.clear();  // the regions, and the session tells of pins as they are then
  }
  return metadata;
}

std::shared_ptr<const std::string> NixlAgent::metadata() {
  if (!metadata_)
    metadata_ = std::make_shared<const std::string>(describe(regions(), true).encode());
  return metadata_;
}

std::string NixlAgent::partialMetadata(const RegistrationList& list, bool with_card) {
  std::vector<Region> some;
  if (list.rows->count() != 0)
    for (const Key& key : keysOf(list, "get_partial_agent_metadata")) {
      const auto found = registrations_.find(key);
      if (found == registrations_.end())
        fail(Outcome::kNotFound,
             fmt::format("get_partial_agent_metadata: {:#x}, {} bytes is not registered",
                         std::get<2>(key), std::get<3>(key)));
      some.push_back({.memory = std::get<0>(key),
                      .device = std::get<1>(key),
                      .address = std::get<2>(key),
                      .bytes = std::get<3>(key),
                      .serial = found->second.serial});
    }
  Metadata metadata = describe(std::move(some), with_card);
  metadata.partial = true;
  return metadata.encode();
}

const std::string& NixlAgent::addRemote(std::string blob) {
  if (const auto known = remotes_.find(std::string(Metadata::nameOf(blob)));
      known != remotes_.end() && known->second->blob == blob)
    return known->second->name;
  Metadata metadata = valueOf(Metadata::decode(blob));
  if (metadata.name == name_) return name_;
  forgetRemoved();
  auto fresh = std::make_shared<Remote>();
  fresh->name = metadata.name;
  fresh->agent = metadata.agent;
  fresh->regions = std::move(metadata.regions);
  const auto known = remotes_.find(metadata.name);
  const bool same_life = known != remotes_.end() && known->second->agent == metadata.agent;
  if (same_life) {
    const Remote& before = *known->second;
    fresh->peer = before.peer;
    fresh->aimed = before.aimed;
    fresh->aimed_epoch = before.aimed_epoch;
    fresh->met = before.met;
    fresh->known_epoch = before.known_epoch;
    fresh->announced = before.announced;
    if (metadata.partial) fresh->addRegions(before.regions);
  }
  if (metadata.card) aim(*fresh, valueOf(agent_->connect(*metadata.card)), same_life);
  if (fresh->peer) fresh->loaded_epoch = fresh->peer->epoch();
  fresh->setMemory(std::make_shared<const core::PinMap>(hostMemory(fresh->regions)));
  if (!metadata.partial) fresh->blob = std::move(blob);
  remotes_[fresh->name] = fresh;
  return fresh->name;
}

// From now on it may take a while until the agent is connected to.
void NixlAgent::aim(Remote& remote, Peer peer, bool same_life) {
  const bool again = same_life && remote.peer && peer.state() == PeerState::kReady;
  remote.peer = std::move(peer);
  if (again) return;
  remote.aimed = Clock::now();
  remote.aimed_epoch = remote.peer->epoch();
  remote.met = false;
}

bool NixlAgent::removeRemote(const std::string& name) {
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return false;
  // A session that works may be the other end's: it keeps it, or ends it.
  if (found->second->peer) removed_.push_back(*found->second->peer);
  remotes_.erase(found);
  forgetRemoved();
  return true;
}

void NixlAgent::forgetRemoved() {
  std::erase_if(removed_, [this](const Peer& peer) {
    if (remotes_.contains(peer.name())) return true;
    if (peer.state() == PeerState::kReady) return false;
    peer.forget();
    return true;
  });
}

bool NixlAgent::knowsRemote(const std::string& name, const TransferList& list) {
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return false;
  if (list.rows->count() == 0) return true;
  return list.memory == Memory::kDram &&
         Prepared::make(*list.rows, *found->second->memory, name).has_value();
}

void NixlAgent::findRemote(const std::string& name) {
  auto found = [&]() -> Result<std::pair<Peer, std::vector<PinInfo>>> {
    const Unlocked unlocked;
    const Deadline until = kReachWithin;
    VIADUCT_TRY(Peer peer, agent_->find(name, until));
    VIADUCT_CHECK(peer.ready(until));
    auto pins = peer.pins();
    return std::pair(std::move(peer), std::move(pins));
  }();
  auto [peer, pins] = valueOf(std::move(found));
  auto fresh = std::make_shared<Remote>();
  fresh->name = name;
  for (const PinInfo& pin : pins)
    if (const auto region = regionOf(pin)) fresh->regions.push_back(*region);
  aim(*fresh, std::move(peer), false);
  fresh->met = true;
  fresh->setMemory(std::make_shared<const core::PinMap>(hostMemory(fresh->regions)));
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

// Other agents

std::shared_ptr<Remote> NixlAgent::self() {
  if (!self_) {
    auto fresh = std::make_shared<Remote>();
    fresh->name = name_;
    fresh->agent = id_;
    fresh->is_self = true;
    aim(*fresh, valueOf(agent_->self()), false);
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

void NixlAgent::awaitReady(Remote& remote, Deadline until) {
  if (!remote.peer) {
    auto known = agent_->peer(remote.name);
    if (!known)
      fail(Outcome::kRemoteDisconnect,
           fmt::format("the metadata of agent {} does not say how to reach it; add its full "
                       "metadata, or partial metadata with inc_conn_info=True",
                       remote.name));
    remote.peer = *std::move(known);
  }
  const Peer peer = *remote.peer;
  if (peer.state() != PeerState::kReady)
    check(waitUnlocked(until, [&](Deadline slice) { return peer.ready(slice); }));
  remote.met = remote.met || peer.epoch() != remote.aimed_epoch;
}

void NixlAgent::awaitFirst(Remote& remote) {
  Clock::time_point until = remote.aimed + kReachWithin;
  if (remote.peer && (remote.met || remote.peer->epoch() != remote.aimed_epoch)) {
    const PeerState state = remote.peer->state();
    const bool lost = state == PeerState::kLost || state == PeerState::kGone;
    until = lost ? Clock::now() : Clock::now() + kBeginWithin;
  }
  awaitReady(remote, until);
}

// Memory of an agent that was restarted under its old name is not what the old metadata describes.
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

void NixlAgent::connect(const std::string& name) {
  const auto remote = remoteOf(name);
  awaitReady(*remote, kReachWithin);
}

// Notes

// A loop polls for itself: that is sooner than the progress thread wakes up, and gives others the
// GIL. A caller that comes by now and then leaves it to the progress thread, and keeps the GIL.
bool NixlAgent::isLoopOverNotes() {
  const auto now = Clock::now();
  return now - std::exchange(asked_for_notes_, now) < kLoopsWithin;
}

py::dict NixlAgent::takeNotes() {
  py::dict notes;
  auto first = agent_->takeNote();
  if (!first && isLoopOverNotes()) {
    const Unlocked unlocked;
    agent_->poll();
  }
  for (auto note = first ? std::move(first) : agent_->takeNote(); note; note = agent_->takeNote()) {
    const py::object from = nameObject(note->from);
    if (!notes.contains(from)) notes[from] = py::list();
    const std::string_view text = note->text();
    py::list(notes[from]).append(py::bytes(text.data(), text.size()));
  }
  return notes;
}

void NixlAgent::sendNote(const std::string& name, const std::string& note) {
  const auto found = remotes_.find(name);
  const auto remote = found != remotes_.end() ? found->second : name == name_ ? self() : nullptr;
  if (remote) {
    if (!remote->peer || remote->peer->state() != PeerState::kReady) awaitFirst(*remote);
    return check(remote->peer->note(note));
  }
  auto peer = agent_->peer(name);  // it has connected to us
  if (!peer) fail(peer.error());
  check(peer->note(note));
}

// Transfers

namespace {

// Handles of all agents, so that none of another agent is taken for one of its own.
std::uint64_t nextHandle() {
  static std::uint64_t last = 0;
  return ++last;
}

// Fewer are over before another thread could have taken the GIL.
constexpr std::uint64_t kMany = 256;

// Without the GIL where it takes long.
template <class Call>
auto unlockedIf(bool lengthy, const Call& call) {
  if (!lengthy) return call();
  const Unlocked unlocked;
  return call();
}

std::uint64_t microseconds(Duration time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

}  // namespace

std::shared_ptr<PreparedList> NixlAgent::prepareList(const std::string& agent,
                                                     const TransferList& list) {
  requireHost(list.memory, "prepare descriptors");
  auto out = std::make_shared<PreparedList>();
  const bool local = agent.empty() || agent == "NIXL_INIT_AGENT";
  if (!local) out->remote = remoteOf(agent);
  const auto memory = local ? ownMemory() : out->remote->memory;
  const std::shared_ptr<const Rows> rows = list.rows;
  out->descriptors = valueOf(unlockedIf(rows->count() >= kMany, [&] {
    return Prepared::make(*rows, *memory, local ? "this agent" : agent);
  }));
  return out;
}

std::uint64_t NixlAgent::prepare(const std::string& agent, const TransferList& list) {
  const std::uint64_t handle = nextHandle();
  prepared_[handle] = prepareList(agent, list);
  return handle;
}

std::shared_ptr<PreparedList> NixlAgent::prepared(std::uint64_t handle) const {
  if (const auto found = prepared_.find(handle); found != prepared_.end()) return found->second;
  fail(Outcome::kNotFound,
       fmt::format("agent {} has no prepared list {}: it was released, or is another agent's",
                   name_, handle));
}

void NixlAgent::releasePrepared(std::uint64_t handle) {
  const auto list = prepared(handle);
  prepared_.erase(handle);
}

std::shared_ptr<Request> NixlAgent::request(std::uint64_t handle) const {
  if (const auto found = requests_.find(handle); found != requests_.end()) return found->second;
  fail(Outcome::kNotFound,
       fmt::format("agent {} has no transfer {}: it was released, or is another agent's", name_,
                   handle));
}

void NixlAgent::requireRequest(std::uint64_t handle) { static_cast<void>(request(handle)); }

std::uint64_t NixlAgent::makeRequest(Direction direction, std::uint64_t local,
                                     Indices local_indices, std::uint64_t remote,
                                     Indices remote_indices, std::string note) {
  const auto here = prepared(local), there = prepared(remote);
  return makeRequest(direction, *here, std::move(local_indices), *there, std::move(remote_indices),
                     std::move(note));
}

std::uint64_t NixlAgent::makeRequest(Direction direction, const TransferList& local,
                                     const TransferList& remote, const std::string& agent,
                                     std::string note) {
  const auto here = prepareList({}, local),
             there = prepareList(agent.empty() ? name_ : agent, remote);
  return makeRequest(direction, *here, std::nullopt, *there, std::nullopt, std::move(note));
}

std::uint64_t NixlAgent::makeRequest(Direction direction, const PreparedList& local,
                                     std::optional<Indices> local_indices,
                                     const PreparedList& remote,
                                     std::optional<Indices> remote_indices, std::string note) {
  if (local.remote && !local.remote->is_self)
    fail(Outcome::kInvalid,
         fmt::format("the local side is a list of agent {}; prepare it for NIXL_INIT_AGENT",
                     local.remote->name));
  if (!remote.remote)
    fail(
        Outcome::kInvalid,
        "the remote side is a list of this agent's own; prepare it with the other agent's name, or "
        "with this one's for a copy within it");
  const std::uint64_t count = local_indices ? local_indices->size() : local.descriptors.count();
  auto sides = valueOf(unlockedIf(count >= kMany, [&]() -> Result<std::pair<Selection, Selection>> {
    VIADUCT_CHECK(checkPairs(local.descriptors, local_indices, remote.descriptors, remote_indices));
    VIADUCT_TRY(Selection here, local.descriptors.select(std::move(local_indices)));
    VIADUCT_TRY(Selection there, remote.descriptors.select(std::move(remote_indices)));
    return std::pair(std::move(here), std::move(there));
  }));
  const OpKind kind = direction == Direction::kRead ? OpKind::kRead : OpKind::kWrite;
  Transfer transfer = plan(kind, *remote.remote, sides.first, sides.second);
  auto made = std::make_shared<Request>(Request{.transfer = std::move(transfer),
                                                .remote = remote.remote,
                                                .note = std::move(note),
                                                .descriptors = count});
  const std::uint64_t handle = nextHandle();
  requests_[handle] = std::move(made);
  return handle;
}

Transfer NixlAgent::plan(OpKind kind, Remote& remote, const Selection& local,
                         const Selection& there) {
  awaitFirst(remote);
  checkLife(remote);
  if (remote.newest > remote.announced || !remote.looked) awaitPins(remote, there);
  const auto tryIt = [&] {
    return unlockedIf(local.indices.size() >= kMany || local.blocks.count() >= kMany,
                      [&] { return agent_->plan(kind, *remote.peer, local, there); });
  };
  return valueOf(tryIt());
}

// A session tells of registrations in their order, and of all that there are when it begins.
void NixlAgent::lookAtPins(Remote& remote) {
  const std::string prefix = labelPrefix(remote.agent);
  for (const PinInfo& pin : remote.peer->pins())
    if (const auto region = regionOf(pin); region && pin.label.starts_with(prefix))
      remote.announced = std::max(remote.announced, region->serial);
  remote.looked = true;
}

// Metadata may be here before the session has told of what it names. Until then an older
// registration of the same address, which has ended, would be taken for it.
void NixlAgent::awaitPins(Remote& remote, const Selection& there) {
  lookAtPins(remote);
  const bool younger = remote.peer->epoch() != remote.loaded_epoch;
  const Deadline until = younger ? Deadline(kHearWithin) : Deadline(kReachWithin);
  const auto memory = remote.memory;
  std::set<std::uint32_t> serials;
  const std::uint64_t count = there.indices.empty() ? there.blocks.count() : there.indices.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    const Extent block = there.blocks[there.indices.empty() ? i : there.indices[i]];
    const auto* const pin = memory->cover(block.address, block.bytes);
    if (pin != nullptr && pin->slot > remote.announced) serials.insert(pin->slot);
  }
  for (const std::uint32_t serial : serials) {
    const std::string label = labelOf(remote.agent, serial);
    const Peer peer = *remote.peer;
    const auto pin =
        waitUnlocked(until, [&](Deadline slice) { return peer.waitPin(label, slice); });
    if (!pin) return;  // the plan says which memory it is
    remote.announced = std::max(remote.announced, serial);
  }
}

bool NixlAgent::postRequest(std::uint64_t handle, std::string note) {
  const auto one = request(handle);
  if (one->transfer.state() == TransferState::kRunning)
    fail(Outcome::kRepostActive, "the transfer is still running; check it until it is DONE");
  checkLife(*one->remote);
  if (!note.empty()) one->note = std::move(note);
  const std::string text = one->note;  // another thread may change it meanwhile
  const PostOptions options{.note = base::bytesOf(text)};
  if (telemetry_) {
    one->started = Clock::now();
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    one->telemetry = Telemetry{.start_us = microseconds(since_1970),
                               .bytes = one->transfer.bytes(),
                               .descriptors = one->descriptors};
  }
  one->over = false;
  // Also where it is over soon: threads that post small copies would else keep the GIL from each
  // other for 5 ms at a time.
  check(unlockedIf(true, [&] { return one->transfer.post(options); }));
  one->posted = true;
  if (one->telemetry) one->telemetry->post_us = microseconds(Clock::now() - one->started);
  return outcomeOf(*one, one->transfer.state());
}

bool NixlAgent::checkRequest(std::uint64_t handle) {
  const auto one = request(handle);
  if (!one->posted) fail(Outcome::kNotPosted, "the transfer was not posted; call transfer() first");
  auto state = one->transfer.state();
  if (state == TransferState::kRunning) {
    const Unlocked unlocked;
    state = one->transfer.poll();
  }
  return outcomeOf(*one, state);
}

bool NixlAgent::outcomeOf(Request& request, TransferState state) {
  if (state == TransferState::kRunning) return false;
  if (state == TransferState::kDone) {
    if (request.telemetry && !std::exchange(request.over, true))
      request.telemetry->transfer_us = microseconds(Clock::now() - request.started);
    return true;
  }
  const TransferEnd end = request.transfer.end();
  if (end.error) fail(*end.error);
  fail(Outcome::kUnknown, "the transfer failed without a reason");
}

Telemetry NixlAgent::telemetry(std::uint64_t handle) {
  const auto one = request(handle);
  if (!telemetry_)
    fail(Outcome::kNoTelemetry,
         "the agent does not capture telemetry; open it with capture_telemetry=True");
  if (!one->posted) fail(Outcome::kNoTelemetry, "the transfer was not posted");
  if (one->transfer.state() == TransferState::kRunning)
    fail(Outcome::kNoTelemetry, "the transfer is still running; ask when it is DONE");
  static_cast<void>(outcomeOf(*one, one->transfer.state()));
  return *one->telemetry;
}

void NixlAgent::releaseRequest(std::uint64_t handle) {
  const auto one = request(handle);
  requests_.erase(handle);
  if (one->transfer.state() != TransferState::kRunning) return;
  const Unlocked unlocked;
  one->transfer.cancel();
  static_cast<void>(one->transfer.wait());  // that it was cancelled is no news
}

}  // namespace viaduct::python::nixl
