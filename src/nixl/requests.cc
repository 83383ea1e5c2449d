// Implements NixlAgent's calls about prepared lists and transfers.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "nixl/agent.h"
#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

// Time limit for the announcement of a registration, if the session is younger than the metadata.
// Such a session announced all existing registrations when it began. Through an
// older session, the limit is kReachWithin.
constexpr std::chrono::milliseconds kHearWithin{200};

// Numbers the handles of all agents, so that an agent recognises the handle of another agent.
std::uint64_t nextHandle() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

template <class Objects>
auto behind(std::uint64_t handle, const Objects& objects, const char* what,
            const std::string& agent) {
  if (const auto found = objects.find(handle); found != objects.end()) return found->second;
  fail(Outcome::kNotFound,
       fmt::format("agent {} has no {} {}: the {} was released or belongs to another agent", agent,
                   what, handle, what));
}

// Processing fewer blocks takes less time than handing Python's GIL to another thread.
constexpr std::uint64_t kMany = 256;

// Releases the lock around a call that may take long.
template <class Call>
auto unlockedIf(bool lengthy, AgentLock& lock, const Call& call) {
  return lengthy ? unlocked(lock, call) : call();
}

// Rounds up: programs take 0 for "not measured".
std::uint64_t microseconds(Duration time) {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::microseconds>(time).count());
}

std::uint64_t taken(const Selection& side) {
  return side.indices.empty() ? side.blocks.count() : side.indices.size();
}

// The highest serial of the registrations in which the selected blocks lie.
std::uint32_t newestSerial(const core::PinMap& memory, const Selection& there) {
  std::uint32_t newest = 0;
  for (std::uint64_t i = 0; i < taken(there); ++i) {
    const Extent block = there.blocks[there.indices.empty() ? i : there.indices[i]];
    const auto* const pin = memory.cover(block.address, block.bytes);
    if (pin != nullptr) newest = std::max(newest, pin->slot);
  }
  return newest;
}

// A file or an object receives no notifications.
void refuseNote(const std::string& note) {
  if (!note.empty())
    fail(Outcome::kNotSupported,
         "a transfer with a file or an object carries no notification; call send_notif()");
}

// Names a deregistered file or object in the error of its transfer, which knows a pin only. Call
// without the lock.
Error nameWithdrawn(const Request& request, Error error) {
  if (error.code != Code::kDenied) return error;
  for (const auto& one : request.stored) {
    if (!one->isWithdrawn()) continue;
    error.detail = fmt::format("{} was deregistered", one->text());
    error.remedy = "deregister a file or an object after its transfers";
    break;
  }
  return error;
}

[[noreturn]] void failUnregistered(Memory memory, std::uint64_t number, std::uint64_t device,
                                   const Extent& part) {
  fail(part.bytes == 0 ? Outcome::kInvalid : Outcome::kNotFound,
       fmt::format("prepare descriptors: descriptor {} of device {}, {} bytes at offset {}, "
                   "does not lie inside a registered {}; register it first",
                   number, device, part.bytes, part.address,
                   memory == Memory::kFile ? "file" : "object"));
}

}  // namespace

std::shared_ptr<PreparedList> NixlAgent::prepareList(const std::string& agent,
                                                     const TransferList& list) {
  need("prep_xfer_dlist");
  if (isStorage(list.memory)) return prepareStorage(agent, list);
  requireAddresses(list.memory, "prepare descriptors");
  auto out = std::make_shared<PreparedList>();
  const bool local = agent.empty() || agent == "NIXL_INIT_AGENT";
  if (!local) out->remote = remoteOf(agent);
  const auto memory = local ? ownMemory() : out->remote->memory;
  const std::shared_ptr<const Rows> rows = list.rows;
  out->descriptors = valueOf(unlockedIf(rows->count() >= kMany, lock_, [&] {
    return Prepared::make(*rows, *memory, local ? "this agent" : agent);
  }));
  return out;
}

// Finds the registration of each descriptor, so that transfers need not look again.
std::shared_ptr<PreparedList> NixlAgent::prepareStorage(const std::string& agent,
                                                        const TransferList& list) {
  auto out = std::make_shared<PreparedList>();
  out->storage = storageFor(list.memory, "prepare descriptors");
  if (!agent.empty() && agent != "NIXL_INIT_AGENT" && agent != name_)
    fail(Outcome::kInvalid,
         fmt::format("prepare descriptors: {} is reached by its own agent only; pass the name of "
                     "this agent, {}, in place of {}",
                     memoryName(list.memory), name_, agent));
  Rows parts;
  for (std::size_t row = 0; row < list.rows->count(); ++row) {
    const Run run = list.rows->run(row);
    const std::uint64_t device = list.rows->devices()[row];
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const Extent part{run.base + i * (run.stride == 0 ? run.bytes : run.stride), run.bytes};
      auto stored = storedAt(list.memory, device, part);
      if (part.bytes == 0 || !stored) failUnregistered(list.memory, parts.count(), device, part);
      parts.add(part, device);
      out->stored.push_back(std::move(stored));
    }
  }
  out->descriptors = valueOf(Prepared::of(parts));
  return out;
}

std::uint64_t NixlAgent::prepare(const std::string& agent, const TransferList& list) {
  const std::uint64_t handle = nextHandle();
  prepared_[handle] = prepareList(agent, list);
  return handle;
}

std::shared_ptr<PreparedList> NixlAgent::prepared(std::uint64_t handle) const {
  return behind(handle, prepared_, "prepared list", name_);
}

void NixlAgent::releasePrepared(std::uint64_t handle) {
  const auto list = prepared(handle);
  prepared_.erase(handle);
}

std::shared_ptr<Request> NixlAgent::request(std::uint64_t handle) const {
  return behind(handle, requests_, "transfer", name_);
}

std::uint64_t NixlAgent::requestBackend(std::uint64_t handle) {
  const Memory memory = request(handle)->memory;
  const auto serves = [&](const Plugin* one) {
    return isStorage(memory) ? one->memory == memory : one->isNetwork();
  };
  const auto found = std::find_if(backends_.begin(), backends_.end(), serves);
  if (found == backends_.end()) return createBackend(plugins().front().name, {});
  return static_cast<std::uint64_t>(found - backends_.begin()) + 1;
}

std::string NixlAgent::requestPath(std::uint64_t handle) {
  const auto one = request(handle);
  return unlocked(lock_, [&] { return one->transfer.path().text(); });
}

std::uint64_t NixlAgent::makeRequest(Direction direction, std::uint64_t local,
                                     Indices local_indices, std::uint64_t remote,
                                     Indices remote_indices, RequestOptions options) {
  return makeRequest(direction, {prepared(local), std::move(local_indices)},
                     {prepared(remote), std::move(remote_indices)}, std::move(options));
}

std::uint64_t NixlAgent::makeRequest(Direction direction, const TransferList& local,
                                     const TransferList& remote, const std::string& agent,
                                     RequestOptions options) {
  return makeRequest(direction, {prepareList({}, local)},
                     {prepareList(agent.empty() ? name_ : agent, remote)}, std::move(options));
}

std::uint64_t NixlAgent::makeRequest(Direction direction, Side local, Side remote,
                                     RequestOptions options) {
  if (local.list->remote && !local.list->remote->is_self)
    fail(Outcome::kInvalid, fmt::format("the local side is a list of agent {}'s memory; prepare "
                                        "local memory for NIXL_INIT_AGENT",
                                        local.list->remote->name));
  if (local.list->storage)
    fail(Outcome::kInvalid,
         fmt::format("the local side is a list of {}; pass DRAM or VRAM as the local side",
                     memoryName(local.list->storage->memory())));
  if (!remote.list->storage && !remote.list->remote)
    fail(Outcome::kInvalid,
         "the remote side is a list of this agent's memory; prepare it with the remote agent's "
         "name, or with this agent's name for a copy within the agent");
  const bool write = direction == Direction::kWrite;
  auto made = remote.list->storage ? makeStorageRequest(write, std::move(local), remote, options)
                                   : makeMemoryRequest(write, std::move(local), std::move(remote),
                                                       std::move(options));
  const std::uint64_t handle = nextHandle();
  requests_[handle] = std::move(made);
  return handle;
}

std::shared_ptr<Request> NixlAgent::makeMemoryRequest(bool write, Side local, Side remote,
                                                      RequestOptions options) {
  const std::uint64_t count = local.chosen().count();
  const auto other = remote.list->remote;
  auto [here, there] =
      valueOf(unlockedIf(count >= kMany, lock_, [&]() -> Result<std::pair<Selection, Selection>> {
        VIADUCT_CHECK(checkPairs(local.chosen(), remote.chosen()));
        VIADUCT_TRY(Selection from, std::move(local).select(!write));
        VIADUCT_TRY(Selection into, std::move(remote).select(write));
        return std::pair(std::move(from), std::move(into));
      }));
  Transfer transfer =
      plan(write ? OpKind::kWrite : OpKind::kRead, *other, here, there, options.priority);
  return std::shared_ptr<Request>(new Request{
      .transfer = FencedTransfer(std::move(transfer), "transfer", "the handle was released"),
      .remote = other,
      .note = std::move(options.note),
      .descriptors = count});
}

std::shared_ptr<Request> NixlAgent::makeStorageRequest(bool write, Side local, const Side& remote,
                                                       const RequestOptions& options) {
  refuseNote(options.note);
  StorageAgent& storage = *remote.list->storage;
  std::vector<Extent> parts;
  std::vector<std::shared_ptr<Stored>> stored;
  Reached reached;
  const auto memory = ownRegions();
  auto transfer = unlocked(lock_, [&]() -> Result<Transfer> {
    const Chosen there = remote.chosen();
    VIADUCT_CHECK(checkPairs(local.chosen(), there));
    for (std::uint64_t i = 0; i < there.count(); ++i) {
      parts.push_back(there[i]);
      stored.push_back(remote.list->stored[there.at(i)]);
    }
    VIADUCT_TRY(const Selection host, std::move(local).select(!write));
    VIADUCT_CHECK(storage.pinMemory(memory));
    VIADUCT_TRY(reached, reachAll(storage, parts, stored, write));
    return storage.plan(write, reached.blocks, host, options.priority);
  });
  return std::shared_ptr<Request>(new Request{
      .transfer =
          FencedTransfer(valueOf(std::move(transfer)), "transfer", "the handle was released"),
      .remote = nullptr,
      .note = {},
      .descriptors = parts.size(),
      .memory = storage.memory(),
      .stored = std::move(stored),
      .pins = std::move(reached.pins)});
}

// Never waits: a transfer to an agent that is still connecting is planned when it is posted and the
// agent is ready.
Transfer NixlAgent::plan(OpKind kind, Remote& remote, const Selection& local,
                         const Selection& there, Priority priority) {
  TransferOptions options{.priority = priority, .reach = reachOf(remote)};
  if (!options.reach) checkLife(remote);
  if (options.reach || remote.newest > remote.announced || !remote.looked_at_pins)
    awaitPins(remote, there, options);
  return valueOf(unlockedIf(taken(local) >= kMany, lock_, [&] {
    return agent_->plan(kind, *remote.peer, local, there, std::move(options));
  }));
}

// A session announces all existing registrations when it begins, and later registrations in order.
// So the highest announced serial covers all lower serials.
void NixlAgent::lookAtPins(Remote& remote) {
  const std::string prefix = labelPrefix(remote.agent);
  for (const PinInfo& pin : remote.peer->pins())
    if (const auto region = regionOf(pin); region && pin.label.starts_with(prefix))
      remote.announced = std::max(remote.announced, region->serial);
  remote.looked_at_pins = true;
}

// Has the transfer wait until the session has announced the registrations in which the selected
// blocks lie. Without the wait, an ended registration of the same address would be taken for the
// new registration.
void NixlAgent::awaitPins(Remote& remote, const Selection& there, TransferOptions& options) {
  const std::uint32_t serial = newestSerial(*remote.memory, there);
  if (!options.reach) {
    lookAtPins(remote);
    if (serial <= remote.announced) return;
    const bool younger = remote.peer->epoch() != remote.loaded_epoch;
    options.reach = younger ? Deadline(kHearWithin) : Deadline(kReachWithin);
  }
  options.awaits = [prefix = labelPrefix(remote.agent), serial](std::string_view label) {
    return label.starts_with(prefix) && serialOf(label).value_or(0) >= serial;
  };
}

bool NixlAgent::postRequest(std::uint64_t handle, std::string note) {
  const auto one = request(handle);
  if (one->transfer.state() == TransferState::kRunning)
    fail(Outcome::kRepostActive,
         "the transfer is still running; call check_xfer_state() until it returns DONE");
  if (one->remote)
    checkLife(*one->remote);
  else
    refuseNote(note);
  if (!note.empty()) one->note = std::move(note);
  const std::string text =
      one->note;  // a copy: another thread may change one->note during the post
  const PostOptions options{.note = base::bytesOf(text)};
  if (telemetry_) {
    one->started = Clock::now();
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    one->telemetry = Telemetry{.start_us = microseconds(since_1970),
                               .steady_us = microseconds(one->started.time_since_epoch()),
                               .descriptors = one->descriptors};
  }
  one->over = false;
  // Releases the lock for small copies too. Otherwise a thread of Python that posts in a loop keeps
  // the GIL from other threads for 5 ms at a time.
  check(unlocked(lock_, [&]() -> Status {
    auto posted = one->transfer.post(options);
    if (!posted) return nameWithdrawn(*one, std::move(posted).error());
    return posted;
  }));
  one->posted = true;
  if (one->telemetry) one->telemetry->post_us = microseconds(Clock::now() - one->started);
  return outcomeOf(*one, one->transfer.state());
}

bool NixlAgent::checkRequest(std::uint64_t handle) {
  const auto one = request(handle);
  if (!one->posted) fail(Outcome::kNotPosted, "the transfer was not posted; call transfer() first");
  auto state = one->transfer.state();
  if (state == TransferState::kRunning) {
    const Unlocked unlocked(lock_);
    state = one->transfer.poll();
  }
  return outcomeOf(*one, state);
}

bool NixlAgent::outcomeOf(Request& request, TransferState state) {
  if (state == TransferState::kRunning) return false;
  if (state == TransferState::kDone) {
    if (request.telemetry && !std::exchange(request.over, true)) {
      request.telemetry->transfer_us = microseconds(Clock::now() - request.started);
      request.telemetry->bytes = request.transfer.bytes();
    }
    return true;
  }
  if (request.remote) checkLife(*request.remote);
  const TransferEnd end = request.transfer.end();
  if (end.error)
    fail(unlocked(lock_, [&] {
      for (const auto& one : request.stored) one->drop();
      return nameWithdrawn(request, *end.error);
    }));
  fail(Outcome::kUnknown, "the transfer failed and the library gives no reason");
}

Telemetry NixlAgent::telemetry(std::uint64_t handle) {
  const auto one = request(handle);
  if (!telemetry_)
    fail(Outcome::kNoTelemetry,
         "the agent does not capture telemetry; open it with capture_telemetry=True");
  if (!one->posted) fail(Outcome::kNoTelemetry, "the transfer was not posted");
  if (one->transfer.state() == TransferState::kRunning)
    fail(Outcome::kNoTelemetry,
         "the transfer is still running; ask for telemetry after it is DONE");
  static_cast<void>(outcomeOf(*one, one->transfer.state()));
  return *one->telemetry;
}

void NixlAgent::releaseRequest(std::uint64_t handle) {
  need("release_xfer_handle");
  auto one = request(handle);
  requests_.erase(handle);
  const Unlocked unlocked(lock_);
  one->transfer.fence();
  one.reset();  // without the lock, because it may release pins
}

}  // namespace viaduct::nixl
