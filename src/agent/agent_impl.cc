#include "agent/agent_impl.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "agent/peer_impl.h"
#include "agent/transfer_impl.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/process_id.h"
#include "base/random.h"
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

std::string freshName() {
  std::array<std::uint8_t, 3> salt{};
  static_cast<void>(base::fillSecret(salt));  // it only distinguishes agents of one process
  return fmt::format("{}-{}-{:02x}", base::printable(host::hostName()), ::getpid(),
                     fmt::join(salt, ""));
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

Result<std::shared_ptr<AgentImpl>> AgentImpl::open(Settings settings,
                                                   const base::MovableClock* clock) {
  if (settings.name.empty()) settings.name = freshName();
  VIADUCT_CHECK(checkSettings(settings));
  const Deadline until = settings.deadline;
  std::shared_ptr<AgentImpl> impl(new AgentImpl(std::move(settings)));
  awaitDevices(impl->settings_.rails, impl->settings_.deadline);
  VIADUCT_CHECK(impl->openEngine(*impl, clock));
  if (!impl->settings_.secret.empty())
    impl->secret_ = base::secretFromText(impl->settings_.secret);
  else if (!impl->settings_.insecure)
    VIADUCT_CHECK(base::fillSecret(impl->secret_));
  {
    const auto held = impl->hold();
    VIADUCT_CHECK(impl->openListener(until));
    VIADUCT_CHECK(impl->openBackends(until));
    impl->openStaging();
    impl->openPins();
    VIADUCT_CHECK(impl->checkHello());
    impl->beatSooner(impl->settings_.detect / 4);
  }
  VIADUCT_CHECK(impl->engine_->start(helpersFor(impl->rails_.countAlone())));
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

// The last backend, so that its rail is polled after those that do its work.
void AgentImpl::openStaging() {
  if (!settings_.backends.empty() && !backends_.needStages()) return;
  stages_ = std::make_unique<Stages>(*this);
  auto staging = std::make_unique<move::StagingBackend>(
      [this](core::LinkHost& session) { return stages_->hostFor(session); });
  rails_.add(*staging);
  backends_.add(std::move(staging));
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
    : Ground(std::move(settings)), notes_(settings_.note_backlog) {}

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
    const Still still(rails_);
    rails_.forget();
    backends_.close();
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
  backends_.leak();
  static_cast<void>(new auto(std::move(peers_)));
  static_cast<void>(new auto(std::move(self_)));
  static_cast<void>(new auto(std::move(newcomers_)));
  static_cast<void>(new auto(std::move(listener_)));
  static_cast<void>(new auto(engine_));  // handles still use its lock
}

bool AgentImpl::progress() {
  if (notes_.forgetMadeRoom()) letSendersGoOn();
  bool moved = rings_.look();
  rails_.runAttended();
  rails_.handleEvents();
  moved = rails_.deliverEnded() || moved;
  if (stages_) stages_->freeLeft();
  if (std::exchange(recheck_, false)) {
    moved = true;
    const auto peers = peers_;  // a peer may come or go meanwhile
    for (const auto& peer : peers) peer->recheck();
  }
  if (!graveyard_.empty()) std::exchange(graveyard_, {}).clear();
  return moved;
}

bool AgentImpl::busy() const { return recheck_ || notes_.madeRoom() || rails_.busy(); }

Result<PinInfo> AgentImpl::pin(const Segment& memory, std::string label,
                               const core::Audience& audience) {
  const Still still(rails_);
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
      const Still still(rails_);
      removed = backends_.count() == 0 ? leftByPeers() : pins_->remove(slot);
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
  for (const auto& backend : backends_.all())
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
  ++counts().notes_received;
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

// A user of eventFd() polls when that descriptor is readable, and a note in a disarmed ring does
// not make it readable.
void AgentImpl::suppressWakeups() {
  if (!hasEventFd()) rings_.suppressWakeups();
}

}  // namespace viaduct::agent
