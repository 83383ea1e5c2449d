#include "nixl_agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <set>
#include <utility>

#include "arguments.h"
#include "base/environment.h"
#include "base/process_id.h"
#include "gil.h"
#include "nixl_status.h"

namespace viaduct::python::nixl {
namespace {

constexpr std::chrono::milliseconds kLongestPoll = std::chrono::minutes(1);

std::set<NixlAgent*>& openAgents() {
  static std::set<NixlAgent*> agents;
  return agents;
}

// Opens an agent that listens on all addresses, because an inference engine has peers on other
// hosts. VIADUCT_LISTEN names other addresses. A peer needs the secret in the agent's metadata.
Result<Agent> openAgent(const std::string& name) {
  VIADUCT_TRY(Settings settings, settingsFromEnvironment());
  settings.name = name;
  if (const char* const listen = base::variable("VIADUCT_LISTEN");
      listen != nullptr && *listen != '\0')
    return Agent::open(settings);
  settings.listen = {"0.0.0.0:0", "[::]:0"};
  auto agent = Agent::open(settings);
  if (agent || (agent.error().operation != "socket" && agent.error().operation != "bind"))
    return agent;
  settings.listen = {"0.0.0.0:0"};  // this system has no IPv6
  return Agent::open(settings);
}

}  // namespace

NixlAgent::NixlAgent(std::string name, const AgentConfig& config)
    : name_(std::move(name)),
      telemetry_(config.capture_telemetry),
      fork_generation_(base::forkGeneration()) {
  if (name_.empty())
    fail(Outcome::kInvalid, "the agent's name is empty; pass a name that no other agent has");
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
    for (const auto& [memory, storage] : storages_) storage->close();
    if (agent_) agent_->close();
  });
}

void NixlAgent::need(const char* operation) const {
  if (fork_generation_ != base::forkGeneration())
    fail(Outcome::kInvalid,
         fmt::format("{}: the agent was opened before fork(), by the parent process; open an agent "
                     "in the child",
                     operation));
}

void NixlAgent::close() {
  const auto storages = storages_;  // a copy: another thread may open one meanwhile
  const Unlocked unlocked;
  for (const auto& [memory, storage] : storages) storage->close();
  agent_->close();
}

void closeAgents() {
  // close() releases the GIL, so another thread may drop agents during the loop.
  while (!openAgents().empty()) {
    const auto held = (*openAgents().begin())->weak_from_this().lock();
    openAgents().erase(openAgents().begin());
    if (held) held->close();
  }
}

std::vector<Memory> NixlAgent::memories() const {
  std::vector<Memory> out;
  for (const BackendInfo& backend : agent_->backends())
    for (const MemoryKind kind : backend.memory)
      if (backend.open && !isStorage(kind) &&
          std::find(out.begin(), out.end(), memoryOf(kind)) == out.end())
        out.push_back(memoryOf(kind));
  return out;
}

// Events

void NixlAgent::watch(const Result<int>& events) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, valueOf(events), &event) != 0)
    fail(systemError(Code::kExhausted, "fileno", errno));
}

int NixlAgent::fileno() {
  need("fileno");
  if (events_) return events_.get();
  events_ = base::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!events_) fail(systemError(Code::kExhausted, "fileno", errno));
  watch(agent_->eventFd());
  for (const auto& [memory, storage] : storages_) watch(storage->eventFd());
  return events_.get();
}

bool NixlAgent::wait(const py::object& timeout) {
  const int events = fileno();
  const auto readable = waitUnlocked(deadlineOf("wait", timeout), [&](Deadline slice) -> Status {
    do {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(slice.at() - Clock::now());
      pollfd one{.fd = events, .events = POLLIN, .revents = 0};
      if (::poll(&one, 1, static_cast<int>(std::clamp(left, {}, kLongestPoll).count())) > 0)
        return Ok{};
    } while (!slice.passed());
    return Error{.code = Code::kTimeout, .operation = "wait"};
  });
  const auto storages = storages_;  // a copy: another thread may open one meanwhile
  const Unlocked unlocked;
  agent_->poll();
  for (const auto& [memory, storage] : storages) storage->poll();
  return readable.has_value();
}

// Registrations

std::vector<NixlAgent::Key> NixlAgent::keysOf(const RegistrationList& list,
                                              const char* operation) const {
  need(operation);
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
  if (isStorage(list.memory)) return registerStorage(list);
  requireAddresses(list.memory, "register_memory");
  // Each registration has its own pin, so that peers cannot access memory once it is deregistered.
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
      auto pin = agent_->pin(segmentOf(registeredRegion(key, serial)), labelOf(id_, serial));
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
    // Another thread deregistered the same memory while this thread had released the GIL.
    if (found == registrations_.end())
      fail(Outcome::kNotAllowed,
           "register_memory: another thread has just deregistered the same memory; register it "
           "again");
    ++found->second.count;
  }
  // Holds surplus pins: another thread registered the memory first, or the list names it twice.
  std::vector<Registration> twice;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto [there, is_new] = registrations_.try_emplace(fresh[i]);
    if (is_new) {
      there->second = std::move(made[i]);
    } else {
      ++there->second.count;
      twice.push_back(std::move(made[i]));
    }
  }
  forgetCaches();
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
           fmt::format("deregister_memory: memory at {:#x}, {} bytes, device {} is not registered; "
                       "pass a list that register_memory() returned, and only once",
                       std::get<2>(key), std::get<3>(key), std::get<1>(key)));
  }
  std::vector<Registration> ended;
  for (const auto& [key, count] : times) {
    const auto found = registrations_.find(key);
    if ((found->second.count -= count) != 0) continue;
    ended.push_back(std::move(found->second));
    registrations_.erase(found);
  }
  if (!isStorage(list.memory)) forgetCaches();
  withdraw(std::move(ended));
}

// Ends the access of peers and of this agent's transfers. Returns when the memory may be freed.
void NixlAgent::withdraw(std::vector<Registration> ended) {
  const auto storages = storages_;  // a copy: another thread may open one meanwhile
  Status status = Ok{};
  const auto keep = [&](Status released) {
    if (!released && status) status = std::move(released);
  };
  {
    const Unlocked unlocked;
    for (Registration& one : ended) {
      if (one.stored) keep(one.stored->withdraw());
      if (!one.pin) continue;
      for (const auto& [memory, storage] : storages) keep(storage->unpinMemory(one.serial));
      keep(one.pin->release());
    }
    ended.clear();
  }
  check(status);
}

std::vector<Region> NixlAgent::regions() const {
  std::vector<Region> out;
  out.reserve(registrations_.size());
  for (const auto& [key, registration] : registrations_)
    if (registration.pin) out.push_back(registeredRegion(key, registration.serial));
  return out;
}

// Storage

void NixlAgent::openStorage(Memory memory, const StorageAgent::Values& settings,
                            std::string bucket) {
  need("create_backend");
  if (storages_.contains(memory)) return;
  auto opened =
      unlocked([&] { return StorageAgent::open(memory, name_, settings, std::move(bucket)); });
  const auto [storage, is_new] = storages_.try_emplace(memory, valueOf(std::move(opened)));
  if (is_new && events_) watch(storage->second->eventFd());
}

const std::shared_ptr<StorageAgent>& NixlAgent::storageFor(Memory memory,
                                                           const char* operation) const {
  const auto found = storages_.find(memory);
  if (found == storages_.end())
    fail(Outcome::kNotSupported,
         fmt::format("{}: {} needs a backend: call create_backend() with {}", operation,
                     memoryName(memory), memory == Memory::kFile ? "POSIX, GDS or GDS_MT" : "OBJ"));
  return found->second;
}

void NixlAgent::registerStorage(const RegistrationList& list) {
  const auto storage = storageFor(list.memory, "register_memory");
  std::vector<StoredRow> rows;
  for (std::size_t row = 0; row < list.rows->count(); ++row)
    rows.push_back({list.rows->deviceOf(row), list.rows->extents[row], list.metadata[row]});
  const auto found = [&]() -> Result<std::vector<std::shared_ptr<Stored>>> {
    const Unlocked unlocked;
    std::vector<std::shared_ptr<Stored>> all;
    for (const StoredRow& row : rows) {
      VIADUCT_TRY(all.emplace_back(), Stored::find(*storage, row));
    }
    return all;
  }();
  const auto stored = valueOf(found);
  const auto keyOf = [&](std::size_t row) {
    return Key{list.memory, rows[row].device, rows[row].part.address, rows[row].part.bytes};
  };
  // Descriptors tell files and objects apart by the device alone.
  std::map<std::uint64_t, std::shared_ptr<Stored>> named;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::uint64_t device = rows[row].device;
    const auto [known, is_new] = named.try_emplace(device, stored[row]);
    if (const auto live = registrations_.lower_bound(Key{list.memory, device, 0, 0});
        is_new && live != registrations_.end() && std::get<0>(live->first) == list.memory &&
        std::get<1>(live->first) == device)
      known->second = live->second.stored;
    if (known->second->text() != stored[row]->text())
      fail(Outcome::kNotAllowed,
           fmt::format("register_memory: device {} names {} already, and cannot name {} too; use "
                       "another device for each file or object",
                       device, known->second->text(), stored[row]->text()));
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    Registration& here = registrations_[keyOf(row)];
    ++here.count;
    // A descriptor that was closed, and opened as another file, means the new file.
    if (!here.stored || !here.stored->isSame(*stored[row])) here.stored = stored[row];
  }
}

std::shared_ptr<Stored> NixlAgent::storedAt(Memory memory, std::uint64_t device,
                                            const Extent& part) const {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  for (auto row = registrations_.upper_bound(Key{memory, device, part.address, kMost});
       row != registrations_.begin();) {
    --row;
    const auto& [kind, of, first, bytes] = row->first;
    if (kind != memory || of != device) break;
    if (part.bytes <= bytes && part.address - first <= bytes - part.bytes)
      return row->second.stored;
  }
  return nullptr;
}

py::list NixlAgent::objectSizes(const std::vector<std::string>& keys) {
  need("query_memory");
  const auto storage = storageFor(Memory::kObject, "query_memory");
  const auto sizes = valueOf(unlocked([&] { return storage->sizesOf(keys); }));
  py::list out;
  for (const auto& size : sizes) out.append(size ? py::object(py::int_(*size)) : py::none());
  return out;
}

std::shared_ptr<const std::vector<Region>> NixlAgent::ownRegions() {
  if (!own_regions_) own_regions_ = std::make_shared<const std::vector<Region>>(regions());
  return own_regions_;
}

std::shared_ptr<const core::PinMap> NixlAgent::ownMemory() {
  if (!own_memory_) own_memory_ = std::make_shared<const core::PinMap>(mapOf(*ownRegions()));
  return own_memory_;
}

}  // namespace viaduct::python::nixl
