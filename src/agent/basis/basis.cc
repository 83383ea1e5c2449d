#include "agent/basis/basis.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/process_id.h"
#include "base/random.h"
#include "host/facts.h"

namespace viaduct::agent {

using base::log;
using base::LogLevel;

Status Basis::openEngine(Progressable& target, const base::MovableClock* clock) {
  fork_generation_ = base::forkGeneration();
  boot_ = host::bootId();
  VIADUCT_CHECK(base::fillSecret(id_));
  VIADUCT_TRY(engine_, ProgressEngine::open(target, settings_.spin, clock));
  return Ok{};
}

Basis::Held Basis::hold() const {
  // In a fork()ed child, a thread that does not exist there may hold the lock. The child has no
  // other thread to exclude.
  return forked() ? Held() : Held(engine_->lock());
}

bool Basis::forked() const { return fork_generation_ != base::forkGeneration(); }

Status Basis::usable(const char* operation) const {
  if (closed())
    return Error{.code = Code::kInvalid, .operation = operation, .detail = "the agent is closed"};
  return ofThisProcess(operation);
}

Status Basis::ofThisProcess(const char* operation) const {
  if (forked())
    return Error{.code = Code::kInvalid,
                 .operation = operation,
                 .detail = "the agent was opened before fork(), by the parent process",
                 .remedy = "open an agent in the child, after fork()"};
  return Ok{};
}

Status Basis::openBackends(Deadline until) {
  VIADUCT_CHECK(openFaults());
  VIADUCT_CHECK(backends_.open(
      {.settings = settings_, .poller = engine_->poller(), .until = until.at()}, faults_.get()));
  for (const auto& backend : backends_.all()) rails_.add(*backend);
  return Ok{};
}

void Basis::openPins() {
  pins_ = std::make_unique<PinTable>(backends_.all());
  pinScratch();
  rails_.complete();
}

// If no fault is set, the agent works on the backends' own rails and links.
Status Basis::openFaults() {
  VIADUCT_TRY(core::FaultPlan plan, core::parseFaults(settings_.faults));
  if (plan.rules.empty()) return Ok{};
  log(LogLevel::kWarning, "agent {} injects faults: VIADUCT_FAULTS={}", settings_.name,
      settings_.faults);
  faults_ = std::make_unique<FaultSource>(std::move(plan), engine_->poller());
  return Ok{};
}

Duration Basis::lentFor(Duration asked) {
  if (!faults_) return asked;
  return std::min(asked, faults_->takeLease().value_or(asked));
}

// Peers may read the scratch memory, so it has nothing but bytes that were sent to a peer.
void Basis::pinScratch() {
  if (!faults_ || !faults_->corrupts()) return;
  const auto scratch = faults_->scratch();
  Segment memory = Segment::host(scratch.data(), scratch.size());
  memory.access = MemoryAccess::kReadOnly;
  if (const auto slot = pins_->add(memory, "VIADUCT_FAULTS"))
    faults_->scratchIsPinned(*slot);
  else
    log(LogLevel::kWarning, "VIADUCT_FAULTS corrupts no writes: {}", slot.error().text());
}

template <class Skill>
Result<std::shared_ptr<Skill>> Basis::skillFor(
    MemoryKind kind, std::shared_ptr<Skill> (core::Backend::*skill)()) const {
  const auto held = hold();
  VIADUCT_CHECK(usable("pin"));
  return backends_.skill(kind, skill);
}

Result<Segment> Basis::opened(const Segment& memory) const {
  if (memory.kind == MemoryKind::kHost) return memory;
  if (isStorage(memory.kind)) {
    VIADUCT_TRY(const auto storage, skillFor(memory.kind, &core::Backend::storage));
    return storage->open(memory);
  }
  VIADUCT_TRY(const auto devices, skillFor(memory.kind, &core::Backend::deviceMemory));
  return devices->open(memory);
}

Result<Segment> Basis::allocateAt(std::uint32_t device, std::uint64_t bytes) const {
  VIADUCT_TRY(const auto devices, skillFor(MemoryKind::kDevice, &core::Backend::deviceMemory));
  return devices->allocate(device, bytes);
}

Result<Segment> Basis::allocateHeld(std::uint32_t device, std::uint64_t bytes) const {
  VIADUCT_TRY(const auto devices,
              backends_.skill(MemoryKind::kDevice, &core::Backend::deviceMemory));
  return devices->allocate(device, bytes);
}

std::shared_ptr<const BlockMemory> Basis::blockMemory() {
  return std::make_shared<const BlockMemory>(pins_->map(), pins_->infos(), backends_.gpus());
}

void Basis::owe(std::function<void()> callback) {
  owed_.push_back(std::move(callback));
  engine_->takeOverNow();
}

void Basis::runCallbacks() {
  std::vector<std::function<void()>> callbacks;
  {
    const auto held = hold();
    callbacks.swap(owed_);
  }
  for (const auto& callback : callbacks) callback();
}

// The user's thread waits on an epoll of its own. It contains the agent's poller, and an eventfd
// that only poll() silences.
Result<int> Basis::eventFd() {
  if (bell_) return bell_poller_.get();
  const SectionsShut shut(rails_);  // threads in sections (move/sections.h) use bell_
  base::Fd bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  base::Fd both(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (!bell || !both || ::epoll_ctl(both.get(), EPOLL_CTL_ADD, bell.get(), &event) != 0 ||
      ::epoll_ctl(both.get(), EPOLL_CTL_ADD, engine_->poller().fd(), &event) != 0)
    return systemError(Code::kExhausted, "eventFd", errno);
  bell_ = std::move(bell);
  bell_poller_ = std::move(both);
  ringBell();  // notes may have arrived before, and transfers may have ended
  return bell_poller_.get();
}

void Basis::ringBell() {
  if (!bell_ || bell_rung_.exchange(true)) return;
  const std::uint64_t one = 1;
  // Cannot block below a count of 2^64 - 2.
  [[maybe_unused]] const auto rung = ::write(bell_.get(), &one, sizeof one);
}

bool Basis::poll() {
  {
    const auto held = hold();
    std::uint64_t rings = 0;
    if (bell_rung_ && ::read(bell_.get(), &rings, sizeof rings) > 0) bell_rung_ = false;
  }
  return engine_->poll();
}

}  // namespace viaduct::agent
