#include "agent/agent_impl.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "agent/metrics/statistics_text.h"
#include "agent/peers/peer_impl.h"
#include "base/log.h"
#include "base/net/handshake.h"
#include "base/printable.h"
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
  [[maybe_unused]] const std::future<void> beside = base::prepareFirstHandshake();
  awaitDevices(impl->settings_.rails, impl->settings_.deadline);
  VIADUCT_CHECK(impl->openEngine(*impl, clock));
  {
    const auto held = impl->hold();
    VIADUCT_CHECK(impl->peers_.listen(until));
    VIADUCT_CHECK(impl->openBackends(until));
    impl->openStaging();
    impl->openPins();
    VIADUCT_CHECK(impl->peers_.checkHello());
    impl->peers_.beatSooner(impl->settings_.detect / 4);
  }
  VIADUCT_CHECK(impl->engine_->start(helpersFor(impl->rails_.countAlone())));
  VIADUCT_CHECK(impl->openFinder(until));
  VIADUCT_CHECK(impl->openExporter(until));
  return impl;
}

Status AgentImpl::openFinder(Deadline until) {
  if (settings_.meet.empty()) return Ok{};
  Card mine;
  {
    const auto held = hold();
    mine = peers_.card();
  }
  VIADUCT_TRY(finder_, Finder::open(settings_, std::move(mine), until));
  return Ok{};
}

Status AgentImpl::openExporter(Deadline until) {
  if (settings_.metrics.empty()) return Ok{};
  const auto text = [this] {
    Statistics now;
    {
      const auto held = hold();
      now = statistics();
    }
    return statisticsText(now, ::getpid());
  };
  const std::string id = fmt::format("{:02x}", fmt::join(std::span(id_).first(8), ""));
  VIADUCT_TRY(exporter_, base::MetricsServer::open(settings_.metrics, id, text, until));
  const auto held = hold();
  metrics_endpoint_ = exporter_->endpoint();
  return Ok{};
}

Result<Card> AgentImpl::find(const std::string& name, Deadline until) const {
  {
    const auto held = hold();
    if (peers_.drains()) return peers_.drainError("find");
  }
  VIADUCT_TRY(const Finder* const finder, placeFor(fmt::format("find {}", name)));
  return finder->find(name, until);
}

Result<Finder*> AgentImpl::placeFor(const std::string& operation) const {
  if (finder_) return finder_.get();
  return Error{
      .code = Code::kInvalid,
      .operation = operation,
      .detail = "this agent has no meeting place",
      .remedy = fmt::format("set {} to host:port of `viaduct meet`, or to http://host:port of etcd",
                            core::settingName("meet", "VIADUCT_MEET"))};
}

// Opens the staging backend last, so that its rail is polled after the rails that do its work.
void AgentImpl::openStaging() {
  if (!settings_.backends.empty() && !backends_.needStages()) return;
  stages_ = std::make_unique<Stages>(peers_, traffic_);
  auto staging = std::make_unique<move::StagingBackend>(
      [this](core::LinkHost& session) { return stages_->hostFor(session); });
  rails_.add(*staging);
  backends_.add(std::move(staging));
}

AgentImpl::AgentImpl(Settings settings)
    : Basis(std::move(settings)),
      traffic_(*this),
      parcels_(*this, traffic_),
      peers_(*this, traffic_, parcels_) {}

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
  // The first call ends the checks of blocks. The second runs the callbacks of their transfers.
  runCallbacks();
  runCallbacks();
}

// Drops the peers and backends. Threads that still wait or poll find that their transfers have
// ended, and that no work is left.
void AgentImpl::letGo() {
  auto held = hold();
  traffic_.endReaching(nullptr,
                       {.code = Code::kPeerLost, .operation = "close", .detail = "closed here"});
  peers_.close();
  parcels_.close();
  {
    const Still still(rails_);
    rails_.forget();
    for (auto& settled : backends_.close()) peers_.awaitOwn(std::move(settled));
  }
  engine_->takeOverNow();
  waitUntilSettled(held);
  if (stages_ && !peers_.left()) stages_->keepLeft();
  stages_.reset();
}

// A peer that copies from or to memory here stops after the current chunk, unless its process is
// stopped.
void AgentImpl::waitUntilSettled(Held& held) {
  const auto until = now() + settings_.grace;
  while (!peers_.left() && now() < until) {
    held.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    held.lock();
  }
  if (const Status left = peers_.left(); !left) log(LogLevel::kError, "{}", left.error().text());
}

// In a fork()ed child: threads, peers and sockets belong to the parent, so this leaks them
// untouched.
void AgentImpl::abandon() {
  if (finder_) finder_->abandon();
  if (exporter_) exporter_->abandon();
  backends_.leak();
  peers_.leak();
  static_cast<void>(new auto(engine_));  // handles still use its lock
}

bool AgentImpl::progress() {
  bool moved = peers_.readNotes();
  rails_.runAttended();
  rails_.handleEvents();
  moved = rails_.deliverEnded() || moved;
  if (stages_) stages_->freeLeft();
  return peers_.recheck() || moved;
}

Status AgentImpl::unpin(std::uint32_t slot) {
  const auto uses = [slot](const Posting& posting) { return posting.uses(slot); };
  pins_->retire(slot);
  const PinInfo& memory = (*pins_)[slot].info;
  for (const auto& peer : peers_.all()) peer->leases().revokeWithin({memory.address, memory.bytes});
  traffic_.forEach([&](Posting& posting) {
    if (uses(posting))
      posting.abort({.code = Code::kDenied,
                     .operation = "transfer",
                     .detail = "the local memory was released during the transfer"});
  });
  engine_->waitHeld([&] { return traffic_.none(uses); }, Clock::time_point::max());
  for (const auto& peer : peers_.all()) peer->withdraw((*pins_)[slot]);
  return removePin(slot);
}

// While this function waits, the event loop runs, because other peers need heartbeats. No event
// tells that a peer has left the memory.
Status AgentImpl::removePin(std::uint32_t slot) {
  Status outcome = Ok{};
  bool known = false;
  const auto over = [&] {
    if (known) return true;
    {
      const Still still(rails_);
      outcome = backends_.count() == 0 ? peers_.left() : pins_->remove(slot);
    }
    known = outcome || outcome.error().code != Code::kBusy;
    return known;
  };
  while (!engine_->waitHeld(over, Clock::now() + kLookEvery)) {
  }
  return outcome;
}

// Keeps the note rings armed if the user has asked for eventFd(): a note in a disarmed ring does
// not make that descriptor readable.
void AgentImpl::suppressWakeups() {
  if (!hasEventFd()) peers_.noteRings().suppressWakeups();
}

}  // namespace viaduct::agent
