#include "measure/run/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fields.h"
#include "base/sizes.h"
#include "host/facts.h"
#include "measure/proof/gpu_rate.h"
#include "measure/run/engine.h"
#include "measure/run/stage_transfers.h"
#include "measure/run/stream_transfers.h"
#include "measure/run/swap_transfers.h"
#include "measure/run/trace_transfers.h"
#include "measure/run/wait_ready.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

// The longest wait for the other members' values, beside the row's duration. A member may first
// have to fill 64 GiB. A dead member is noticed long before.
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

Result<std::vector<std::string>> WorkerState::gather(std::string value) {
  return group.gather(std::move(value), kGatherPatience + spec.duration, stop);
}

Status WorkerState::waitForPeers() {
  for (const auto& [peer_rank, peer] : peers) {
    const meet::Member& member = group.roster().members[peer_rank];
    const auto named = [&](const Error& error) { return namedPeer(error, member); };
    VIADUCT_CHECK(waitReady(peer, kConnect, stop, heard.waiting, named));
  }
  return Ok{};
}

Result<bool> areWell(const std::vector<std::string>& failures) {
  bool well = true;
  for (const std::string& one : failures) {
    VIADUCT_TRY(const Failure failure, decodeFailure(one));
    well = well && !failure;
  }
  return well;
}

std::uint32_t WorkerState::rankOf(std::uint32_t stream, Role role) const {
  const Pair& pair = streams[stream].pair;
  return role == Role::kInitiator ? spec.layout.initiatorRank(pair.initiator)
                                  : spec.layout.targetRank(pair.target);
}

std::uint32_t WorkerState::numberOf(std::uint32_t stream, Role role) const {
  return measure::numberOf(streams[stream].pair, role);
}

WorkerDevice* WorkerState::deviceOf(std::uint32_t stream, Role role) {
  if (rankOf(stream, role) != rank) return nullptr;
  const std::uint32_t number = numberOf(stream, role);
  for (WorkerDevice& device : devices)
    if (device.role == role && device.number == number) return &device;
  return nullptr;
}

Role WorkerState::initiating(std::uint32_t stream) const {
  return streams[stream].reverse ? Role::kTarget : Role::kInitiator;
}

Worker::Worker(const Spec& spec, Agent& agent, meet::Group& group, const Settings& settings,
               const StopFlag& stop, Heard heard, NoteSource notes)
    : state_{.spec = spec,
             .agent = agent,
             .group = group,
             .settings = settings,
             .stop = stop,
             .heard = std::move(heard),
             .notes = notes ? std::move(notes)
                            : [&agent](Deadline until) { return agent.waitNote(until); },
             .streams = streamsOf(spec.layout, spec.threads, spec.bidirectional),
             .rank = group.roster().rank,
             .observer = proof::Observer(settings.rails, "/",
                                         [&agent] { return agent.statistics().rails; })} {}

Result<bool> Worker::allWell(const Failure& mine) {
  VIADUCT_TRY(const auto all, state_.gather(encode(mine)));
  return areWell(all);
}

// Returns the numbers of the devices of one side that this process has. A member of a pattern has
// devices of both sides.
std::vector<std::uint32_t> Worker::ownDevices(Role role) const {
  const Layout& layout = state_.spec.layout;
  const bool initiates = role == Role::kInitiator;
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < (initiates ? layout.initiators : layout.targets); ++i)
    if ((initiates ? layout.initiatorRank(i) : layout.targetRank(i)) == state_.rank)
      out.push_back(i);
  return out;
}

Status Worker::openGpus() {
  const Spec& spec = state_.spec;
  for (const Role role : {Role::kInitiator, Role::kTarget}) {
    const auto first = role == Role::kInitiator ? spec.initiator_gpu : spec.target_gpu;
    if (!first) continue;
    for (const std::uint32_t i : ownDevices(role)) {
      VIADUCT_TRY(gpus_[i], gpuOf(state_.settings, spec.layout.mode, *first, i));
    }
  }
  return Ok{};
}

Status Worker::makeMemory() {
  VIADUCT_TRY(state_.bytes, deviceBytes(state_.spec));
  for (const Role role : {Role::kInitiator, Role::kTarget}) {
    for (const std::uint32_t i : ownDevices(role)) {
      VIADUCT_TRY(Buffer memory, makeBuffer(role, i));
      state_.devices.push_back({.role = role, .number = i, .memory = std::move(memory)});
      if (state_.spec.layout.stored()) VIADUCT_CHECK(makeStorage(i));
    }
  }
  return Ok{};
}

Result<Buffer> Worker::makeBuffer(Role role, std::uint32_t number) const {
  const Spec& spec = state_.spec;
  const bool initiates = role == Role::kInitiator;
  Buffer::Kind kind{.choice = spec.memory, .huge_pages = spec.huge_pages};
  if (const auto gpu = gpus_.find(number); gpu != gpus_.end()) kind.gpu = gpu->second;
  const std::uint64_t bytes = initiates ? state_.bytes.initiator : state_.bytes.target;
  return Buffer::make(state_.agent, bytes + kBackgroundDepth * spec.background, kind,
                      labelOf(role, number));
}

// Makes the storage of a device. The agent reaches the storage as a peer of itself.
Status Worker::makeStorage(std::uint32_t number) {
  if (state_.peers.count(state_.rank) == 0) {
    VIADUCT_TRY(Peer self, state_.agent.self());
    state_.peers.emplace(state_.rank, std::move(self));
  }
  VIADUCT_TRY(auto storage, Storage::make(state_.agent, state_.peers.at(state_.rank), state_.spec,
                                          state_.bytes, number));
  state_.devices.push_back(
      {.role = Role::kTarget, .number = number, .storage = std::move(storage)});
  return Ok{};
}

Status Worker::reach(std::uint32_t rank) {
  if (state_.peers.count(rank) != 0) return Ok{};
  const meet::Member& member = state_.group.roster().members[rank];
  auto peer = state_.agent.importCard(std::as_bytes(std::span(member.about)));
  if (!peer) return namedPeer(std::move(peer).error(), member);
  state_.peers.emplace(rank, *std::move(peer));
  return Ok{};
}

// Connects this member to the peers to which it initiates. In a ping-pong both ends connect,
// because each sends to the other.
Status Worker::reachPeers() {
  for (std::uint32_t s = 0; s < state_.streams.size(); ++s) {
    const std::uint32_t here = state_.rankOf(s, state_.initiating(s)),
                        there = state_.rankOf(s, other(state_.initiating(s)));
    if (here == state_.rank) VIADUCT_CHECK(reach(there));
    if (there == state_.rank && state_.spec.ping_pong) VIADUCT_CHECK(reach(here));
  }
  return state_.waitForPeers();
}

// Measures the memory rates at one member of each host. Several hosts may measure at once, because
// they share no memory.
Status Worker::measureMemoryRates() {
  VIADUCT_TRY(const auto boots, state_.gather(host::bootId()));
  const auto first = std::find(boots.begin(), boots.end(), boots[state_.rank]) - boots.begin();
  if (first == static_cast<std::ptrdiff_t>(state_.rank))
    state_.observer.measureMemory(largestWorkingSet(state_.spec));
  VIADUCT_TRY(const auto done, state_.gather({}));
  return Ok{};
}

Gpu Worker::gpuWithId(const std::string& id) const {
  const auto at = std::ranges::find_if(
      gpus_, [&](const auto& one) { return proof::placeOf(one.first, one.second).id == id; });
  return at == gpus_.end() ? nullptr : at->second;
}

// Measures the copy rates of GPUs, before the run allocates GPU memory. If no device has a GPU, no
// member measures.
Status Worker::measureGpuRates() {
  GpuMember own{.boot_id = host::bootId()};
  for (const auto& [number, gpu] : gpus_) own.gpus.push_back(proof::placeOf(number, gpu));
  VIADUCT_TRY(const auto texts, state_.gather(base::packed(own)));
  std::vector<GpuMember> by_rank(texts.size());
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    if (!base::unpack(texts[rank], by_rank[rank]))
      return Error{.code = Code::kProtocol,
                   .operation = "bench",
                   .detail = fmt::format("rank {} sent a malformed list of GPUs", rank)};
  VIADUCT_TRY(auto rates, measured(gpuTurns(state_.spec.layout, by_rank)));
  state_.observer.setGpus(std::move(own.gpus), std::move(rates));
  return Ok{};
}

// Measures in this member's turn, while the other members wait.
Result<std::vector<proof::GpuRate>> Worker::measured(const std::vector<GpuTurn>& turns) {
  std::uint32_t last = 0;
  for (const GpuTurn& one : turns)
    if (!one.copies.empty()) last = std::max(last, one.turn + 1);
  std::vector<proof::GpuRate> out;
  const GpuTurn& own = turns[state_.rank];
  for (std::uint32_t turn = 0; turn < last; ++turn) {
    if (own.turn == turn)
      for (const GpuCopy& copy : own.copies)
        out.push_back(proof::measureGpuRate(gpuWithId(copy.from), gpuWithId(copy.to)));
    VIADUCT_TRY(const auto done, state_.gather({}));
  }
  return out;
}

// Returns the files that this member moves, and the folders in which it makes files.
std::vector<std::string> Worker::files() const {
  const Spec& spec = state_.spec;
  std::vector<std::string> out;
  if (spec.pipeline)
    for (const pipeline::Place& place : spec.pipeline->places)
      if (place.kind == pipeline::Place::Kind::kStorage && place.rank == state_.rank &&
          place.storage.kind == MemoryKind::kFile)
        out.push_back(place.storage.path);
  if (!spec.layout.stored() || spec.storage.kind != MemoryKind::kFile) return out;
  return spec.storage.names.empty() ? std::vector{spec.storage.place} : spec.storage.names;
}

Status Worker::open() {
  VIADUCT_CHECK(measureMemoryRates());
  state_.observer.setFiles(files());
  Status made = openGpus();
  VIADUCT_CHECK(measureGpuRates());
  if (state_.spec.pipeline) {
    pipeline_ = std::make_shared<pipeline::PipelineFlows>(state_);
    return pipeline_->open();
  }
  if (!state_.spec.rows.empty() && state_.spec.rows.front().swap) {
    VIADUCT_CHECK(made);
    VIADUCT_TRY(pools_, swap::makePools(state_));
    return Ok{};
  }
  if (made) made = makeMemory();
  Failure failure;
  if (!made) failure = made.error();
  // kPeerLost here means a lost object store. The code is changed, because the other members would
  // report a lost worker.
  if (failure && failure->code == Code::kPeerLost) failure->code = Code::kDevice;
  VIADUCT_TRY(const auto all, state_.gather(encode(failure)));
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    VIADUCT_TRY(const Failure theirs, decodeFailure(all[rank]));
    if (theirs) return namedPeer(*theirs, state_.group.roster().members[rank]);
  }
  auto reached = reachPeers();
  VIADUCT_TRY(const bool well, allWell(reached ? Failure{} : Failure{reached.error()}));
  if (!reached || well) return reached;
  return Error{.code = Code::kPeerLost,
               .operation = "bench",
               .detail = "another member cannot reach its peers"};
}

Result<std::vector<Composed>> Worker::measure(std::span<const Workload> rows) {
  std::vector<std::unique_ptr<RowTransfers>> all;
  for (const Workload& row : rows) all.push_back(transfersOf(row));
  return measureInTurns(state_, std::move(all));
}

std::unique_ptr<RowTransfers> Worker::transfersOf(const Workload& row) {
  if (row.stages) return pipeline::stageTransfers(state_, row, pipeline_);
  if (row.swap) return swap::swapTransfers(state_, row, pools_);
  return row.trace ? traceTransfers(state_, row) : streamTransfers(state_, row);
}

}  // namespace viaduct::measure
