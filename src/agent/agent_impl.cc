#include "agent/agent_impl.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "agent/faults/faulty_backend.h"
#include "agent/peer_impl.h"
#include "agent/transfer_impl.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/process_id.h"
#include "base/random.h"
#include "base/thread_number.h"
#include "base/waiting.h"
#include "core/setting_name.h"
#include "host/devices.h"
#include "host/facts.h"
#include "move/staging/staging_backend.h"

namespace viaduct::agent {

using base::log;
using base::LogLevel;

namespace {

// The interval at which release() checks whether a peer still copies from or to the memory.
constexpr Duration kLookEvery = std::chrono::milliseconds(1);

bool isBusy(const move::RailRunner* runner) { return runner->busy(); }

std::string freshName() {
  std::array<std::uint8_t, 3> salt{};
  static_cast<void>(base::fillSecret(salt));  // it only distinguishes agents of one process
  return fmt::format("{}-{}-{:02x}", base::printable(host::hostName()), ::getpid(),
                     fmt::join(salt, ""));
}

Error unknownBackend(std::string_view wanted, std::span<const core::BackendEntry> catalogue) {
  std::string names;
  for (const auto& entry : catalogue)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  return {.code = Code::kNotFound,
          .operation = "settings: backends",
          .detail = fmt::format("no backend named {} is built in", wanted),
          .remedy = fmt::format("choose one of: {}", names)};
}

void logLeftOut(std::string_view backend, const Error& why) {
  // A machine without the hardware is normal, so that is no warning.
  const bool news = why.code != Code::kUnsupported;
  log(news ? LogLevel::kWarning : LogLevel::kInfo, "backend {} is skipped: {}", backend,
      why.text());
}

// The number of helper threads, for a machine with many NICs and enough cores to poll them.
unsigned helpersFor(std::size_t rails) {
  constexpr unsigned kRailsEach = 4, kCoresEach = 4;
  const unsigned forced = cores_for_tests;
  const unsigned cores = forced != 0 ? forced : std::thread::hardware_concurrency();
  return std::min(static_cast<unsigned>(rails) / kRailsEach, cores / kCoresEach);
}

// Waits until each named device is ready: link and address, or an active RDMA port. A pod's devices
// appear shortly after its processes start. Without them some backends do not open, and others lose
// their first session. After the deadline the backends open anyway.
void awaitDevices(const std::vector<std::string>& named, Deadline until) {
  constexpr std::chrono::milliseconds kLook{20};
  base::Waiting waiting([](const std::string& line) { log(LogLevel::kWarning, "{}", line); },
                        until.at());
  for (const std::string& device : named)
    for (std::string amiss; !(amiss = host::notReady(device)).empty() && !until.passed();) {
      if (waiting.isDue()) waiting.tell({.operation = "open the agent", .detail = amiss});
      std::this_thread::sleep_for(kLook);
    }
}

}  // namespace

AgentImpl::Held AgentImpl::hold() const {
  // In a fork()ed child, a thread that does not exist there may hold the lock. The child has no
  // other thread to exclude.
  return forked() ? Held() : Held(engine_->lock());
}

bool AgentImpl::forked() const { return fork_generation_ != base::forkGeneration(); }

Result<std::shared_ptr<AgentImpl>> AgentImpl::open(Settings settings,
                                                   const base::MovableClock* clock) {
  if (settings.name.empty()) settings.name = freshName();
  VIADUCT_CHECK(checkSettings(settings));
  const Deadline until = settings.deadline;
  std::shared_ptr<AgentImpl> impl(new AgentImpl(std::move(settings)));
  impl->fork_generation_ = base::forkGeneration();
  impl->boot_ = host::bootId();
  awaitDevices(impl->settings_.rails, impl->settings_.deadline);
  VIADUCT_CHECK(base::fillSecret(impl->id_));
  if (!impl->settings_.secret.empty())
    impl->secret_ = base::secretFromText(impl->settings_.secret);
  else if (!impl->settings_.insecure)
    VIADUCT_CHECK(base::fillSecret(impl->secret_));
  VIADUCT_TRY(auto engine, ProgressEngine::open(*impl, impl->settings_.spin, clock));
  impl->engine_ = std::move(engine);
  {
    const auto held = impl->hold();
    VIADUCT_CHECK(impl->openListener(until));
    VIADUCT_CHECK(impl->openBackends(until));
    VIADUCT_CHECK(impl->checkHello());
    impl->beatSooner(impl->settings_.detect / 4);
  }
  VIADUCT_CHECK(impl->engine_->start(helpersFor(impl->alone_.size())));
  VIADUCT_CHECK(impl->openFinder(until));
  VIADUCT_CHECK(impl->openExporter(until));
  return impl;
}

// Peers would refuse a bad hello at each dial, so it is checked here once.
Status AgentImpl::checkHello() const {
  const base::Bytes bytes = base::encode(hello(0));
  if (bytes.size() <= kMaxHelloPayload && base::decode<Hello>(bytes)) return Ok{};
  return Error{.code = Code::kInvalid,
               .operation = "settings: listen",
               .detail = fmt::format(
                   "a hello with {} addresses; peers accept at most {} addresses and {} bytes",
                   listener_->addresses().size(), kMaxAddresses, kMaxHelloPayload),
               .remedy = "listen on fewer addresses"};
}

Status AgentImpl::openFinder(Deadline until) {
  if (settings_.meet.empty()) return Ok{};
  Card mine;
  {
    const auto held = hold();
    mine = card();
  }
  VIADUCT_TRY(finder_, Finder::open(settings_, std::move(mine), until));
  return Ok{};
}

Status AgentImpl::openExporter(Deadline until) {
  if (settings_.metrics.empty()) return Ok{};
  const auto ask = [this] {
    const auto held = hold();
    return statistics();
  };
  const std::string id = fmt::format("{:02x}", fmt::join(std::span(id_).first(8), ""));
  VIADUCT_TRY(exporter_, Exporter::open(settings_.metrics, id, ask, until));
  const auto held = hold();
  metrics_endpoint_ = exporter_->endpoint();
  return Ok{};
}

Result<Card> AgentImpl::find(const std::string& name, Deadline until) const {
  if (finder_) return finder_->find(name, until);
  return Error{
      .code = Code::kInvalid,
      .operation = fmt::format("find {}", name),
      .detail = "this agent has no meeting place",
      .remedy = fmt::format("set {} to host:port of `viaduct meet`, or to http://host:port of etcd",
                            core::settingName("meet", "VIADUCT_MEET"))};
}

Status AgentImpl::openBackends(Deadline until) {
  const auto catalogue = core::backendCatalogue();
  for (const std::string& wanted : settings_.backends)
    if (std::none_of(catalogue.begin(), catalogue.end(),
                     [&](const core::BackendEntry& entry) { return entry.name == wanted; }))
      return unknownBackend(wanted, catalogue);
  VIADUCT_CHECK(openFaults());
  for (const core::BackendEntry& entry : catalogue) VIADUCT_CHECK(openBackend(entry, until));
  openStaging();
  for (const core::AbsentBackend& absent : core::absentBackends())
    left_out_.push_back(
        {.name = std::string(absent.name), .text = fmt::format("not built in: {}", absent.why)});
  pins_ = std::make_unique<PinTable>(backends_);
  pinScratch();
  for (CellCounts& counts : cell_counts_) counts.rails.resize(rails_.size());
  return Ok{};
}

Status AgentImpl::openBackend(const core::BackendEntry& entry, Deadline until) {
  const core::BackendContext context{
      .settings = settings_, .poller = engine_->poller(), .until = until.at()};
  const auto& list = settings_.backends;
  const bool named = std::find(list.begin(), list.end(), entry.name) != list.end();
  const auto leave_out = [&](std::string why) {
    left_out_.push_back({.name = std::string(entry.name), .text = std::move(why)});
    return Ok{};
  };
  if (list.empty() && entry.facts->for_tests) return leave_out("for tests: opened only if named");
  if (!list.empty() && !named) return leave_out("not among the requested backends");
  auto opened = entry.open(context);
  if (!opened && named) return std::move(opened).error();
  if (!opened) {
    logLeftOut(entry.name, opened.error());
    return leave_out(opened.error().text());
  }
  enter(faults_ ? withFaults(*std::move(opened), *faults_) : *std::move(opened));
  return Ok{};
}

// Without faults, the agent works on the backends' own rails and links.
Status AgentImpl::openFaults() {
  VIADUCT_TRY(core::FaultPlan plan, core::parseFaults(settings_.faults));
  if (plan.rules.empty()) return Ok{};
  log(LogLevel::kWarning, "agent {} injects faults: VIADUCT_FAULTS={}", settings_.name,
      settings_.faults);
  faults_ = std::make_unique<FaultSource>(std::move(plan), engine_->poller());
  return Ok{};
}

Duration AgentImpl::lentFor(Duration asked) {
  if (!faults_) return asked;
  return std::min(asked, faults_->takeLease().value_or(asked));
}

// Peers may read the scratch memory, so it has nothing but bytes that were sent to a peer.
void AgentImpl::pinScratch() {
  if (!faults_ || !faults_->corrupts()) return;
  const auto scratch = faults_->scratch();
  Segment memory = Segment::host(scratch.data(), scratch.size());
  memory.access = MemoryAccess::kReadOnly;
  if (const auto slot = pins_->add(memory, "VIADUCT_FAULTS"))
    faults_->scratchIsPinned(*slot);
  else
    log(LogLevel::kWarning, "VIADUCT_FAULTS corrupts no writes: {}", slot.error().text());
}

void AgentImpl::enter(std::unique_ptr<core::Backend> backend) {
  for (const auto& rail : backend->rails()) {
    RunRail& run = rails_.emplace_back(*rail, backend->can(), news_, rails_.size());
    run_rails_[rail.get()] = &run;
    move::RailRunner& runner = run.runner;
    (runner.runsAlone() ? alone_ : attended_).push_back(&runner);
  }
  backends_.push_back(std::move(backend));
}

// The last backend, so that its rail is polled after those that do its work. Agents with storage,
// GPUs or a backend that is slow with small ops stage it for their peers, and peers without can ask
// for it.
void AgentImpl::openStaging() {
  const auto needs_stages = [](const auto& backend) {
    return backend->storage() != nullptr || backend->deviceMemory() != nullptr ||
           backend->can().pack_below != 0;
  };
  if (!settings_.backends.empty() && std::ranges::none_of(backends_, needs_stages)) return;
  stages_ = std::make_unique<Stages>(*this);
  enter(std::make_unique<move::StagingBackend>(
      [this](core::LinkHost& session) { return stages_->hostFor(session); }));
}

std::vector<BackendInfo> AgentImpl::backendInfos() const {
  std::vector<BackendInfo> out;
  for (const auto& backend : backends_) {
    const core::Capabilities& can = backend->can();
    BackendInfo info{.name = std::string(can.name),
                     .open = true,
                     .text = std::string(backend->description()),
                     .preference = can.preference,
                     .memory = can.memory,
                     .same_host = can.same_host,
                     .rdma = can.rdma,
                     .tcp = can.tcp};
    for (const auto& rail : backend->rails()) info.rails.emplace_back(rail->name());
    // In the router's order: backends of equal preference keep the agent's order.
    const auto behind = std::upper_bound(
        out.begin(), out.end(), info,
        [](const auto& one, const auto& other) { return one.preference < other.preference; });
    out.insert(behind, std::move(info));
  }
  out.insert(out.end(), left_out_.begin(), left_out_.end());
  return out;
}

Status AgentImpl::openListener(Deadline until) {
  if (settings_.insecure && settings_.secret.empty())
    log(LogLevel::kWarning, "agent {} accepts every peer that reaches its socket", settings_.name);
  const std::string unix_name =
      fmt::format("viaduct-{:02x}", fmt::join(std::span(id_).first(8), ""));
  auto accepted = [this](base::Fd socket, base::Unproven::Place place) {
    accept(std::move(socket), std::move(place));
  };
  VIADUCT_TRY(listener_, base::Listener::open(settings_.listen, unix_name, engine_->poller(),
                                              std::move(accepted), until.at()));
  return Ok{};
}

AgentImpl::AgentImpl(Settings settings)
    : settings_(std::move(settings)), notes_(settings_.note_backlog) {}

AgentImpl::~AgentImpl() { shutdown(); }

void AgentImpl::shutdown() {
  if (forked()) {
    if (!closed_.exchange(true) && engine_) abandon();
    return;
  }
  const std::lock_guard one_at_a_time(closing_);
  if (closed_.exchange(true) || !engine_) return;
  exporter_.reset();
  if (finder_) finder_->close();  // so that no agent finds this one while it closes
  engine_->stop();
  letGo();
  // A check of blocks ends in the first round, and its callback runs in the second.
  runCallbacks();
  runCallbacks();
}

// Drops the peers and backends. Threads that still wait or poll then find no work and ended
// transfers.
void AgentImpl::letGo() {
  auto held = hold();
  endReaching(nullptr, {.code = Code::kPeerLost, .operation = "close", .detail = "closed here"});
  for (const auto& peer : peers_) {
    peer->forget();
    for (const auto& settled : peer->unsettled()) unsettled_.emplace_back(peer->name(), settled);
  }
  peers_.clear();
  self_.reset();
  newcomers_.clear();
  graveyard_.clear();
  listener_.reset();
  {
    const Still still(*this);
    for (RunRail& run : rails_) run.runner.forgetRail();
    backends_.clear();
  }
  engine_->takeOverNow();
  note_watchers_.tell();
  waitUntilSettled(held);
  stages_.reset();
}

// A peer that copies from or to memory here stops after the current chunk, unless its process is
// stopped.
void AgentImpl::waitUntilSettled(Held& held) {
  const auto until = now() + settings_.grace;
  while (!leftByPeers() && now() < until) {
    held.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    held.lock();
  }
  if (const Status left = leftByPeers(); !left) log(LogLevel::kError, "{}", left.error().text());
}

// In a fork()ed child: threads, peers and sockets belong to the parent, so this leaks them
// untouched.
void AgentImpl::abandon() {
  if (finder_) finder_->abandon();
  if (exporter_) exporter_->abandon();
  static_cast<void>(new auto(std::move(backends_)));
  static_cast<void>(new auto(std::move(peers_)));
  static_cast<void>(new auto(std::move(self_)));
  static_cast<void>(new auto(std::move(newcomers_)));
  static_cast<void>(new auto(std::move(listener_)));
  static_cast<void>(new auto(engine_));  // handles still use its lock
}

Status AgentImpl::usable(const char* operation) const {
  if (closed())
    return Error{.code = Code::kInvalid, .operation = operation, .detail = "the agent is closed"};
  return ofThisProcess(operation);
}

Status AgentImpl::ofThisProcess(const char* operation) const {
  if (forked())
    return Error{.code = Code::kInvalid,
                 .operation = operation,
                 .detail = "the agent was opened before fork(), by the parent process",
                 .remedy = "open an agent in the child, after fork()"};
  return Ok{};
}

bool AgentImpl::progress() {
  if (notes_.forgetMadeRoom()) letSendersGoOn();
  bool moved = rings_.look();
  for (move::RailRunner* const runner : attended_) runner->run();
  if (news_.events.exchange(false)) handleEvents();
  moved = applyEnded() || moved;
  if (stages_) stages_->freeLeft();
  if (std::exchange(recheck_, false)) {
    moved = true;
    const auto peers = peers_;  // a peer may come or go meanwhile
    for (const auto& peer : peers) peer->recheck();
  }
  if (!graveyard_.empty()) std::exchange(graveyard_, {}).clear();
  return moved;
}

// Handles what rails have found, such as a broken connection.
void AgentImpl::handleEvents() {
  const Still still(*this);
  for (RunRail& run : rails_) run.runner.handleEvents();
}

bool AgentImpl::busy() const {
  return recheck_ || notes_.madeRoom() || news_.any() || std::ranges::any_of(alone_, isBusy) ||
         std::ranges::any_of(attended_, isBusy);
}

unsigned AgentImpl::busyRails() const {
  return static_cast<unsigned>(std::ranges::count_if(alone_, isBusy));
}

// Each thread begins with a different rail. A thread that finds all of them taken sleeps until one
// is free: if it asked again and again, it would take the processor from their threads and from
// peers.
bool AgentImpl::runRails() {
  bool ran = false;
  move::RailRunner* taken = nullptr;
  const unsigned first = base::threadNumber();
  for (std::size_t i = 0; i < alone_.size(); ++i) {
    move::RailRunner& runner = *alone_[(first + i) % alone_.size()];
    if (!runner.busy()) continue;
    if (runner.run())
      ran = true;
    else
      taken = &runner;
  }
  if (!ran && taken != nullptr) taken->awaitTurn();
  return ran || taken != nullptr;
}

void AgentImpl::stopRails() {
  shutSections();
  if (stops_++ != 0) return;
  for (RunRail& run : rails_) run.runner.stop();
}

void AgentImpl::startRails() {
  if (--stops_ == 0)
    for (RunRail& run : rails_) run.runner.start();
  openSections();
}

bool AgentImpl::applyEnded() {
  if (!news_.ended && completions_.empty()) return false;
  apply(completions_);
  return true;
}

void AgentImpl::runCallbacks() {
  std::vector<std::function<void()>> callbacks;
  {
    const auto held = hold();
    callbacks.swap(owed_);
  }
  for (const auto& callback : callbacks) callback();
}

void AgentImpl::owe(std::function<void()> callback) {
  owed_.push_back(std::move(callback));
  engine_->takeOverNow();
}

// The skill, such as core::Storage, of the first open backend that has it for this kind of memory.
template <class Skill>
Result<std::shared_ptr<Skill>> AgentImpl::skillFor(
    MemoryKind kind, std::shared_ptr<Skill> (core::Backend::*skill)()) const {
  const auto held = hold();
  VIADUCT_CHECK(usable("pin"));
  return skillHeld(kind, skill);
}

template <class Skill>
Result<std::shared_ptr<Skill>> AgentImpl::skillHeld(
    MemoryKind kind, std::shared_ptr<Skill> (core::Backend::*skill)()) const {
  for (const auto& backend : backends_) {
    const auto& kinds = backend->can().memory;
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
    if (auto found = (*backend.*skill)()) return found;
  }
  return Error{
      .code = Code::kUnsupported,
      .operation = "pin",
      .detail = fmt::format("no open backend takes segments of kind {}", memoryKindName(kind)),
      .remedy = "see Agent::backends()"};
}

Result<Segment> AgentImpl::opened(const Segment& memory) const {
  if (memory.kind == MemoryKind::kHost) return memory;
  if (isStorage(memory.kind)) {
    VIADUCT_TRY(const auto storage, skillFor(memory.kind, &core::Backend::storage));
    return storage->open(memory);
  }
  VIADUCT_TRY(const auto devices, skillFor(memory.kind, &core::Backend::deviceMemory));
  return devices->open(memory);
}

Result<Segment> AgentImpl::allocateAt(std::uint32_t device, std::uint64_t bytes) const {
  VIADUCT_TRY(const auto devices, skillFor(MemoryKind::kDevice, &core::Backend::deviceMemory));
  return devices->allocate(device, bytes);
}

Result<Segment> AgentImpl::allocateHeld(std::uint32_t device, std::uint64_t bytes) const {
  VIADUCT_TRY(const auto devices, skillHeld(MemoryKind::kDevice, &core::Backend::deviceMemory));
  return devices->allocate(device, bytes);
}

void AgentImpl::giveUp(std::uint64_t whole) const {
  for (const auto& backend : backends_)
    if (const auto storage = backend->storage()) storage->giveUp(whole);
}

Result<PinInfo> AgentImpl::pin(const Segment& memory, std::string label,
                               const core::Audience& audience) {
  const Still still(*this);
  VIADUCT_TRY(const std::uint32_t slot, pins_->add(memory, std::move(label), audience));
  const PinEntry& entry = (*pins_)[slot];
  for (const auto& peer : peers_) peer->announce(entry);
  return entry.info;
}

Status AgentImpl::unpin(std::uint32_t slot) {
  const auto uses = [slot](const Posting& posting) { return posting.uses(slot); };
  pins_->retire(slot);
  const PinInfo& memory = (*pins_)[slot].info;
  for (const auto& peer : peers_) peer->leases().revokeWithin({memory.address, memory.bytes});
  running_.forEach([&](Posting& posting) {
    if (uses(posting))
      posting.abort({.code = Code::kDenied,
                     .operation = "transfer",
                     .detail = "the local memory was released during the transfer"});
  });
  engine_->waitHeld([&] { return running_.none(uses); }, Clock::time_point::max());
  for (const auto& peer : peers_) peer->withdraw((*pins_)[slot]);
  return removePin(slot);
}

// The event loop runs meanwhile, because other peers need heartbeats. No event tells that a peer
// has left the memory.
Status AgentImpl::removePin(std::uint32_t slot) {
  std::optional<Status> outcome;
  const auto over = [&] {
    if (outcome) return true;
    Status removed = Ok{};
    {
      const Still still(*this);
      removed = backends_.empty() ? leftByPeers() : pins_->remove(slot);
    }
    if (!removed && removed.error().code == Code::kBusy) return false;
    outcome = std::move(removed);
    return true;
  };
  while (!engine_->waitHeld(over, Clock::now() + kLookEvery)) {
  }
  return *std::move(outcome);
}

// For a closed agent: no peer begins another copy from or to its memory.
Status AgentImpl::leftByPeers() {
  std::erase_if(unsettled_, [](const auto& peer) { return peer.second(); });
  if (unsettled_.empty()) return Ok{};
  return Error{
      .code = Code::kPeerLost,
      .operation = "release",
      .detail =
          "the agent was closed during the copy of a stopped peer, which the peer may still finish",
      .peer = unsettled_.front().first,
      .remedy = "keep the memory until the peer has died or its settled() is true"};
}

Hello AgentImpl::hello(std::uint64_t last_epoch) const {
  Hello hello{.name = settings_.name,
              .agent = id_,
              .process = base::processId(),
              .boot = boot_,
              .unix_name = listener_ ? listener_->unixName() : "",
              .addresses = listener_ ? listener_->addresses() : std::vector<std::string>{},
              .last_epoch = last_epoch,
              .detect_ms = static_cast<std::uint32_t>(settings_.detect.count())};
  for (const auto& backend : backends_)
    hello.backends.push_back({std::string(backend->can().name), backend->address()});
  return hello;
}

Card AgentImpl::card() const {
  return {.name = settings_.name,
          .agent = id_,
          .boot = boot_,
          .unix_name = listener_ ? listener_->unixName() : "",  // a closed agent has none
          .addresses = listener_ ? listener_->addresses() : std::vector<std::string>(),
          .secret = secret_,
          .pins = pins_->infos()};
}

bool AgentImpl::isThisProcess(const Hello& theirs) const {
  return theirs.process == base::processId();
}

void AgentImpl::arrived(PeerImpl& from, base::Bytes note) {
  const auto& sender = from.noteSender();
  const bool kept = notes_.add(sender, std::move(note));
  ++counts_.notes_received;
  ringBell();
  engine_->changed();
  note_watchers_.tell();
  if (!notes_.hasRoom(*sender)) holdUp(from);
  if (!kept) from.noteDropped();
}

// Stops reading from this sender, and from all peers once all notes together reach the limit.
void AgentImpl::holdUp(PeerImpl& from) {
  from.pauseReading(true);
  if (!notes_.full()) return;
  for (const auto& peer : peers_) peer->pauseReading(true);
}

void AgentImpl::letSendersGoOn() {
  for (const auto& peer : peers_)
    if (notes_.hasRoom(*peer->noteSender())) peer->pauseReading(false);
}

std::optional<Note> AgentImpl::takeNote() {
  auto note = notes_.take();
  if (notes_.madeRoom()) engine_->takeOverNow();
  return note;
}

// The user's thread waits on an epoll of its own. It contains the agent's poller, and an eventfd
// that only poll() silences.
Result<int> AgentImpl::eventFd() {
  if (bell_) return bell_poller_.get();
  const SectionsShut shut(*this);  // threads in them ring the bell
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

// A user of eventFd() polls when that descriptor is readable, and a note in a disarmed ring does
// not make it readable.
void AgentImpl::suppressWakeups() {
  if (!bell_) rings_.suppressWakeups();
}

void AgentImpl::ringBell() {
  if (!bell_ || bell_rung_.exchange(true)) return;
  const std::uint64_t one = 1;
  // Cannot block below a count of 2^64 - 2.
  [[maybe_unused]] const auto rung = ::write(bell_.get(), &one, sizeof one);
}

bool AgentImpl::poll() {
  {
    const auto held = hold();
    std::uint64_t rings = 0;
    if (bell_rung_ && ::read(bell_.get(), &rings, sizeof rings) > 0) bell_rung_ = false;
  }
  return engine_->poll();
}

}  // namespace viaduct::agent
