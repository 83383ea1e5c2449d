#include <fmt/format.h>
#include <viaduct/agent.h>

#include <cerrno>
#include <utility>

#include "agent/core.h"
#include "agent/faces.h"
#include "agent/peer_core.h"
#include "agent/transfer_core.h"
#include "base/sizes.h"
#include "host/memory.h"

namespace viaduct {
namespace {

// The kernel gives a file more pages than there are, and ends a process that touches them. An
// allocation below 1 MiB is not worth reading the files that say so. Huge pages are taken at once.
Status checkRoom(std::uint64_t bytes, const AllocateOptions& options) {
  if (bytes < (1U << 20U) || options.huge_pages) return Ok{};
  const std::uint64_t memory = host::availableMemory();
  if (memory == 0) return Ok{};  // the system does not say
  const std::uint64_t room = memory + host::freeSwap();
  if (bytes <= room) return Ok{};
  return Error{.code = Code::kExhausted,
               .operation = "allocate",
               .detail = fmt::format("{} do not fit: this process may allocate {} more",
                                     base::showSize(bytes), base::showSize(room)),
               .cause = "too little free memory and swap on this host, or a limit of the cgroup",
               .remedy = fmt::format("allocate at most {}, or raise the memory limit of the "
                                     "container or service",
                                     base::showSize(room))};
}

}  // namespace

using agent::AgentCore;
using agent::PinCore;

Agent::Agent(std::shared_ptr<AgentCore> core) : core_(std::move(core)) {}
Agent::Agent(Agent&&) noexcept = default;

Agent& Agent::operator=(Agent&& other) noexcept {
  Agent old(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

Agent::~Agent() {
  if (core_) close();
}

void Agent::close() { core_->shutdown(); }

Result<Agent> Agent::open() {
  VIADUCT_TRY(const Settings settings, settingsFromEnvironment());
  return open(settings);
}

Result<Agent> Agent::open(const Settings& settings) {
  VIADUCT_TRY(auto core, AgentCore::open(settings));
  return Agent(std::move(core));
}

const std::string& Agent::name() const { return core_->settings().name; }

std::vector<BackendInfo> Agent::backends() const {
  const auto held = core_->hold();
  return core_->backendInfos();
}

Result<Pin> Agent::allocate(std::uint64_t bytes, const AllocateOptions& options) {
  VIADUCT_CHECK(core_->usable("allocate"));
  VIADUCT_CHECK(checkRoom(bytes, options));
  VIADUCT_TRY(auto memory, base::SharedMemory::allocate(bytes, {.huge_pages = options.huge_pages}));
  const auto held = core_->hold();
  VIADUCT_CHECK(core_->usable("allocate"));  // another thread may have closed it meanwhile
  VIADUCT_TRY(auto info, core_->pin(memory.segment(), options.label));
  return Pin(std::make_unique<PinCore>(core_, std::move(info), std::move(memory)));
}

Result<Pin> Agent::pin(const Segment& memory, std::string label) {
  VIADUCT_TRY(const Segment checked, agent::checkedSegment(memory));
  const auto held = core_->hold();
  VIADUCT_CHECK(core_->usable("pin"));
  VIADUCT_TRY(auto info, core_->pin(checked, std::move(label)));
  return Pin(std::make_unique<PinCore>(core_, std::move(info), base::SharedMemory()));
}

Card Agent::card() const {
  const auto held = core_->hold();
  return core_->card();
}

Result<Peer> Agent::importCard(std::span<const std::byte> blob) {
  VIADUCT_TRY(const Card card, Card::decode(blob));
  return connect(card);
}

Result<Peer> Agent::connect(const Card& card) {
  const auto held = core_->hold();
  VIADUCT_CHECK(core_->usable("connect"));
  VIADUCT_TRY(auto peer, core_->connect(card));
  core_->engine().takeOverSoon(Clock::now());
  return Peer(std::move(peer));
}

Result<Peer> Agent::connect(std::string_view host_port) {
  const auto held = core_->hold();
  VIADUCT_CHECK(core_->usable("connect"));
  VIADUCT_TRY(auto peer, core_->connectTo(host_port));
  core_->engine().takeOverSoon(Clock::now());
  return Peer(std::move(peer));
}

Result<Peer> Agent::find(std::string_view name, Deadline until) {
  VIADUCT_CHECK(core_->usable("find"));
  VIADUCT_TRY(const Card card, core_->find(std::string(name), until));
  return connect(card);
}

Result<Peer> Agent::self() { return connect(card()); }

std::vector<Peer> Agent::peers() const {
  const auto held = core_->hold();
  std::vector<Peer> out;
  for (const auto& peer : core_->peers()) out.emplace_back(peer);
  return out;
}

Result<Peer> Agent::peer(std::string_view name) const {
  const auto held = core_->hold();
  if (auto found = core_->findPeer(name)) return Peer(std::move(found));
  return Error{.code = Code::kNotFound,
               .operation = "peer",
               .detail = "no peer with that name is known",
               .peer = std::string(name),
               .remedy = "connect() to it, or wait until it connects"};
}

Result<Transfer> Agent::plan(OpKind kind, const Peer& peer, const Selection& local,
                             const Selection& remote, TransferOptions options) {
  auto held = core_->hold();
  VIADUCT_CHECK(core_->usable("plan"));
  auto core = peer.core_;
  while (core->same_as) core = core->same_as;
  if (&core->agent() != core_.get())
    return Error{.code = Code::kInvalid,
                 .operation = "plan",
                 .detail = "the peer belongs to another agent",
                 .peer = core->name()};
  auto transfer = std::make_shared<agent::TransferCore>(core_, std::move(core), kind, local, remote,
                                                        std::move(options));
  VIADUCT_CHECK(transfer->plan(held));
  return Transfer(std::move(transfer));
}

std::optional<Note> Agent::takeNote() {
  const auto held = core_->hold();
  return core_->takeNote();
}

Result<Note> Agent::waitNote(Deadline until) {
  VIADUCT_CHECK(core_->usable("waitNote"));
  auto held = core_->hold();
  const auto over = [&] { return core_->hasNote() || core_->closed(); };
  if (core_->engine().waitHeld(held, over, until.at()))
    if (auto note = core_->takeNote()) return *std::move(note);
  VIADUCT_CHECK(core_->usable("waitNote"));
  return Error{.code = Code::kTimeout, .operation = "waitNote", .detail = "no note arrived"};
}

Statistics Agent::statistics() const {
  const auto held = core_->hold();
  return core_->statistics();
}

bool Agent::poll() { return core_->usable("poll") && core_->poll(); }

Result<int> Agent::eventFd() {
  const auto held = core_->hold();
  VIADUCT_CHECK(core_->usable("eventFd"));
  return core_->eventFd();
}

}  // namespace viaduct
