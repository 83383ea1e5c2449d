#include "nixl/agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/environment.h"
#include "base/lists.h"
#include "base/poller.h"
#include "base/process_id.h"
#include "base/text.h"
#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

// Opens an agent that listens on all addresses, because an inference engine has peers on other
// hosts. VIADUCT_LISTEN names other addresses. A peer needs the secret in the agent's metadata.
Result<Agent> openAgent(const std::string& name) {
  VIADUCT_TRY(Settings settings, settingsFromEnvironment());
  settings.name = name;
  if (!base::variableText("VIADUCT_LISTEN").empty()) return Agent::open(settings);
  settings.listen = {"0.0.0.0:0", "[::]:0"};
  auto agent = Agent::open(settings);
  if (agent || (agent.error().operation != "socket" && agent.error().operation != "bind"))
    return agent;
  settings.listen = {"0.0.0.0:0"};  // this system has no IPv6
  return Agent::open(settings);
}

bool isTelemetryOn(bool configured) {
  const std::string asked = base::lower(base::variableText("NIXL_TELEMETRY_ENABLE"));
  constexpr std::array kYes{"y", "yes", "1", "on", "true"}, kNo{"n", "no", "0", "off", "false"};
  if (base::contains(kYes, asked)) return true;
  return configured && !base::contains(kNo, asked);
}

}  // namespace

NixlAgent::NixlAgent(std::string name, bool capture_telemetry, AgentLock& lock)
    : lock_(lock),
      name_(std::move(name)),
      telemetry_(isTelemetryOn(capture_telemetry)),
      fork_generation_(base::forkGeneration()) {
  if (name_.empty())
    fail(Outcome::kInvalid, "the agent's name is empty; pass a name that no other agent has");
  agent_.emplace(valueOf(unlocked(lock_, [&] { return openAgent(name_); })));
  id_ = agent_->card().agent;
}

NixlAgent::~NixlAgent() {
  for (const auto& [memory, storage] : storages_) storage->agent().close();
  if (agent_) agent_->close();
}

void NixlAgent::need(const char* operation) const {
  if (fork_generation_ != base::forkGeneration())
    fail(Outcome::kInvalid,
         fmt::format("{}: the agent was opened before fork(), by the parent process; open an agent "
                     "in the child",
                     operation));
}

void NixlAgent::close() {
  const auto storages = storages_;  // a copy: other threads may open storage agents
  const Unlocked unlocked(lock_);
  for (const auto& [memory, storage] : storages) storage->agent().close();
  agent_->close();
}

// The calls about events follow.

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
  for (const auto& [memory, storage] : storages_) watch(storage->agent().eventFd());
  return events_.get();
}

Status NixlAgent::awaitEvents(int events, Deadline until) {
  do {
    pollfd one{.fd = events, .events = POLLIN, .revents = 0};
    if (::poll(&one, 1, base::Poller::milliseconds(until.at() - Clock::now())) > 0) return Ok{};
  } while (!until.passed());
  return Error{.code = Code::kTimeout, .operation = "wait"};
}

void NixlAgent::progress() {
  const auto storages = storages_;  // a copy: other threads may open storage agents
  const Unlocked unlocked(lock_);
  agent_->poll();
  for (const auto& [memory, storage] : storages) storage->agent().poll();
}

// The calls about registrations follow.

std::vector<MemoryRange> NixlAgent::rangesOf(const RegistrationList& list,
                                             const char* operation) const {
  need(operation);
  std::vector<MemoryRange> ranges;
  ranges.reserve(list.rows->count());
  for (std::size_t row = 0; row < list.rows->count(); ++row) {
    const Extent extent = list.rows->extent(row);
    ranges.push_back({list.memory, list.rows->devices()[row], extent.address, extent.bytes});
  }
  return ranges;
}

void NixlAgent::registerMemory(const RegistrationList& list) {
  const auto ranges = rangesOf(list, "register_memory");
  if (isStorage(list.memory)) return registerStorage(ranges, list);
  requireAddresses(list.memory, "register_memory");
  // Each registration has its own pin, so that peers cannot access memory once it is deregistered.
  std::vector<MemoryRange> known, fresh;
  for (const MemoryRange& range : ranges)
    (registrations_.contains(range) ? known : fresh).push_back(range);
  auto made = valueOf(unlocked(lock_, [&]() -> Result<std::vector<Registration>> {
    const std::lock_guard one_after_another(registering_);
    std::vector<Registration> pinned;
    for (const MemoryRange& range : fresh) {
      const std::uint32_t serial = ++last_serial_;
      VIADUCT_TRY(Pin pin, agent_->pin(segmentOf({range, serial}), labelOf(id_, serial)));
      pinned.push_back({.count = 1, .serial = serial, .pin = std::move(pin)});
    }
    return pinned;
  }));
  for (const MemoryRange& range : known) {
    const auto found = registrations_.find(range);
    // Another thread deregistered the same memory while this thread had released the lock.
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
  const Unlocked unlocked(lock_);
  twice.clear();
}

void NixlAgent::deregisterMemory(const RegistrationList& list) {
  const auto ranges = rangesOf(list, "deregister_memory");
  std::map<MemoryRange, std::uint64_t> times;
  for (const MemoryRange& range : ranges) ++times[range];
  for (const auto& [range, count] : times) {
    const auto found = registrations_.find(range);
    if (found == registrations_.end() || found->second.count < count)
      fail(Outcome::kNotFound,
           fmt::format("deregister_memory: memory at {:#x}, {} bytes, device {} is not registered; "
                       "pass a list that register_memory() returned, and only once",
                       range.address, range.bytes, range.device));
  }
  std::vector<Registration> ended;
  for (const auto& [range, count] : times) {
    const auto found = registrations_.find(range);
    found->second.count -= count;
    if (found->second.count != 0) continue;
    ended.push_back(std::move(found->second));
    registrations_.erase(found);
  }
  if (!isStorage(list.memory)) forgetCaches();
  withdraw(std::move(ended));
}

// Ends the access of peers and of this agent's transfers. Returns when the memory may be freed.
void NixlAgent::withdraw(std::vector<Registration> ended) {
  const auto storages = storages_;  // a copy: other threads may open storage agents
  check(unlocked(lock_, [&] {
    Status first = Ok{};
    const auto keep = [&](Status released) {
      if (!released && first) first = std::move(released);
    };
    for (Registration& one : ended) {
      if (one.stored) keep(one.stored->withdraw());
      if (!one.pin) continue;
      for (const auto& [memory, storage] : storages) keep(storage->unpinMemory(one.serial));
      keep(one.pin->release());
    }
    ended.clear();
    return first;
  }));
}

std::vector<Region> NixlAgent::regions() const {
  std::vector<Region> out;
  out.reserve(registrations_.size());
  for (const auto& [range, registration] : registrations_)
    if (registration.pin) out.push_back({range, registration.serial});
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

}  // namespace viaduct::nixl
