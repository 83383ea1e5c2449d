#include "measure/run/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/sizes.h"
#include "host/facts.h"
#include "measure/run/row_run.h"
#include "measure/run/wait_ready.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

// Members that die are known long before this; it is for those that fill 64 GiB meanwhile.
constexpr auto kGatherPatience = 10min;
constexpr auto kConnect = 10s;

std::string labelOf(Role role, std::uint32_t number) {
  return fmt::format("bench-{}-{}", role == Role::kInitiator ? "initiator" : "target", number);
}

Error namedPeer(Error error, const meet::Member& member) {
  error.peer = fmt::format("rank {} ({})", member.rank, member.name);
  return error;
}

}  // namespace

std::string aboutOf(const Agent& agent) {
  const std::vector<std::byte> card = agent.exportCard();
  return {reinterpret_cast<const char*>(card.data()), card.size()};
}

Worker::Worker(const Spec& spec, Agent& agent, meet::Group& group,
               const std::vector<std::string>& rails, const StopFlag& stop, Heard heard,
               NoteSource notes)
    : spec_(spec),
      agent_(agent),
      group_(group),
      stop_(stop),
      heard_(std::move(heard)),
      notes_(notes ? std::move(notes) : [&agent](Deadline until) { return agent.waitNote(until); }),
      streams_(streamsOf(spec.layout, spec.threads, spec.bidirectional)),
      rank_(group.roster().rank),
      observer_(rails) {}

Result<std::vector<std::string>> Worker::gather(std::string value) {
  return group_.gather(std::move(value), kGatherPatience + spec_.duration, stop_);
}

Result<bool> Worker::allWell(const Failure& mine) {
  VIADUCT_TRY(const auto all, gather(encode(mine)));
  return areWell(all);
}

Result<bool> Worker::areWell(const std::vector<std::string>& failures) {
  bool well = true;
  for (const std::string& one : failures) {
    VIADUCT_TRY(const Failure failure, decodeFailure(one));
    well = well && !failure;
  }
  return well;
}

Clock::time_point Worker::stopSeen() {
  if (!stop_seen_) stop_seen_ = Clock::now();
  return *stop_seen_;
}

std::uint32_t Worker::rankOf(std::uint32_t stream, Role role) const {
  const Pair& pair = streams_[stream].pair;
  return role == Role::kInitiator ? spec_.layout.initiatorRank(pair.initiator)
                                  : spec_.layout.targetRank(pair.target);
}

WorkerDevice* Worker::deviceOf(std::uint32_t stream, Role role) {
  if (rankOf(stream, role) != rank_) return nullptr;
  const Pair& pair = streams_[stream].pair;
  const std::uint32_t number = role == Role::kInitiator ? pair.initiator : pair.target;
  for (WorkerDevice& device : devices_)
    if (device.role == role && device.number == number) return &device;
  return nullptr;
}

Role Worker::initiating(std::uint32_t stream) const {
  return streams_[stream].reverse ? Role::kTarget : Role::kInitiator;
}

Status Worker::makeMemory() {
  VIADUCT_TRY(bytes_, deviceBytes(spec_));
  const Layout& layout = spec_.layout;
  const Role role = layout.isInitiator(rank_) ? Role::kInitiator : Role::kTarget;
  const bool initiates = role == Role::kInitiator;
  const std::uint32_t count = initiates ? layout.initiators : layout.targets;
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((initiates ? layout.initiatorRank(i) : layout.targetRank(i)) != rank_) continue;
    VIADUCT_TRY(Buffer memory, Buffer::make(agent_, initiates ? bytes_.initiator : bytes_.target,
                                            {spec_.memory, spec_.huge_pages}, labelOf(role, i)));
    devices_.push_back({role, i, std::move(memory)});
  }
  return Ok{};
}

Status Worker::reach(std::uint32_t rank) {
  if (peers_.count(rank) != 0) return Ok{};
  const meet::Member& member = group_.roster().members[rank];
  auto peer = agent_.importCard(std::as_bytes(std::span(member.about)));
  if (!peer) return namedPeer(std::move(peer).error(), member);
  peers_.emplace(rank, *std::move(peer));
  return Ok{};
}

// Both ends of a ping-pong are reached for: either may be the first to want the other.
Status Worker::reachPeers() {
  for (std::uint32_t s = 0; s < streams_.size(); ++s) {
    const std::uint32_t here = rankOf(s, initiating(s)), there = rankOf(s, other(initiating(s)));
    if (here == rank_) VIADUCT_CHECK(reach(there));
    if (there == rank_ && spec_.ping_pong) VIADUCT_CHECK(reach(here));
  }
  for (const auto& [rank, peer] : peers_) {
    const meet::Member& member = group_.roster().members[rank];
    const auto named = [&](const Error& error) { return namedPeer(error, member); };
    VIADUCT_CHECK(waitReady(peer, kConnect, stop_, heard_.waiting, named));
  }
  return Ok{};
}

// One member of each host, and one host's after another's does not matter: they share no memory.
Status Worker::measureMemoryRates() {
  VIADUCT_TRY(const auto boots, gather(host::bootId()));
  const auto first = std::find(boots.begin(), boots.end(), boots[rank_]) - boots.begin();
  if (first == static_cast<std::ptrdiff_t>(rank_)) observer_.measureMemory();
  VIADUCT_TRY(const auto done, gather({}));
  return Ok{};
}

Status Worker::open() {
  VIADUCT_CHECK(measureMemoryRates());
  Status made = makeMemory();
  Failure failure;
  if (!made) failure = made.error();
  VIADUCT_TRY(const auto all, gather(encode(failure)));
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    VIADUCT_TRY(const Failure theirs, decodeFailure(all[rank]));
    if (theirs) return namedPeer(*theirs, group_.roster().members[rank]);
  }
  auto reached = reachPeers();
  VIADUCT_TRY(const bool well, allWell(reached ? Failure{} : Failure{reached.error()}));
  if (!reached || well) return reached;
  return Error{.code = Code::kPeerLost,
               .operation = "bench",
               .detail = "another member cannot reach its peers"};
}

Result<Composed> Worker::measure(const Workload& row) { return RowRun(*this, row).run(); }

}  // namespace viaduct::measure
