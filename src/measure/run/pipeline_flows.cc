#include "measure/run/pipeline_flows.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/bytes.h"
#include "base/fields.h"
#include "base/lists.h"
#include "host/facts.h"
#include "measure/run/flows_at_once.h"
#include "measure/run/wait_ready.h"
#include "meet/groups/group.h"

namespace viaduct::measure::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnect = 10s;

std::string identityOf(const PinnedStorage& storage) {
  const std::string file = storage.identity();
  return file.empty() ? file : fmt::format("{} {}", host::bootId(), file);
}

Error inRoute(Error error, const Route& route) {
  error.operation = fmt::format("{}: {}", route.name, error.operation);
  return error;
}

Result<FlowSide> sideOf(const Peer& peer, const End& end) {
  VIADUCT_TRY(PinInfo pin, peer.waitPin(end.label, kConnect));
  return FlowSide{std::move(pin), end.kind == End::Kind::kRing};
}

std::uint64_t nanosecondsIn(Duration time) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
}

}  // namespace

// Rank 0 sends this to all members after it has opened the source.
struct PipelineFlows::Opening {
  Failure failure = {};
  std::uint64_t bytes = 0;
  std::string identity = {};            // of the source, on this host
  std::vector<std::byte> digests = {};  // of the source's chunks; empty: the contents are a pattern

  friend auto fields(base::Is<Opening> auto& o) {
    return std::tie(o.failure, o.bytes, o.identity, o.digests);
  }
};

PipelineFlows::PipelineFlows(WorkerState& worker)
    : worker_(worker),
      routes_(routesOf(*worker.spec.pipeline)),
      cases_(casesOf(routes_, worker.spec.pipeline->stages.size())),
      memories_(worker.settings, worker.spec.pipeline_data.chunks,
                {.choice = worker.spec.memory, .huge_pages = worker.spec.huge_pages}) {}

Status PipelineFlows::open() {
  VIADUCT_CHECK(shareSource());
  VIADUCT_CHECK(allWell(prepare()));
  return allWell(planRoutes());
}

template <class T>
Result<std::vector<T>> PipelineFlows::exchange(const T& own) {
  VIADUCT_TRY(const auto texts, worker_.gather(base::packed(own)));
  std::vector<T> all(texts.size());
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    if (!base::unpack(texts[rank], all[rank]))
      return Error{.code = Code::kProtocol,
                   .operation = "pipeline",
                   .detail = fmt::format("rank {} sent a malformed message", rank)};
  return all;
}

Error PipelineFlows::atRank(Error error, std::uint32_t rank) const {
  if (rank != worker_.rank && error.peer.empty())
    error.peer = fmt::format("rank {} ({})", rank, worker_.group.roster().members[rank].name);
  return error;
}

Status PipelineFlows::firstFailure(const std::vector<Failure>& by_rank) const {
  for (std::uint32_t rank = 0; rank < by_rank.size(); ++rank)
    if (by_rank[rank]) return atRank(*by_rank[rank], rank);
  return Ok{};
}

Status PipelineFlows::allWell(const Status& mine) {
  VIADUCT_TRY(const auto all, exchange(mine ? Failure{} : Failure{mine.error()}));
  return firstFailure(all);
}

// Rank 0 opens the source and tells all members its size and contents.
Status PipelineFlows::shareSource() {
  Opening own;
  if (worker_.rank == 0)
    if (auto opened = openSource(own); !opened) own.failure = std::move(opened).error();
  VIADUCT_TRY(auto all, exchange(own));
  VIADUCT_CHECK(firstFailure(base::mapped(all, &Opening::failure)));
  bytes_ = all.front().bytes;
  source_identity_ = all.front().identity;
  source_contents_ = Expected::pattern(chunks(), bytes_, worker_.spec.pipeline_data.seed,
                                       PinnedStorage::kSourceEpoch);
  if (all.front().digests.empty()) return Ok{};
  VIADUCT_TRY(std::vector<Digest> digests, decodeDigests(all.front().digests));
  source_contents_ = Expected::digests(chunks(), bytes_, std::move(digests));
  return Ok{};
}

Status PipelineFlows::openSource(Opening& own) {
  const std::uint64_t wanted = worker_.spec.pipeline_data.bytes;
  own.bytes = wanted != 0 ? wanted : kUsualBytes;
  if (pipeline().source() == nullptr) return Ok{};
  VIADUCT_TRY(PinnedStorage opened, PinnedStorage::source(worker_.agent, *pipeline().source(),
                                                          worker_.spec.pipeline_data));
  source_ = std::make_unique<PinnedStorage>(std::move(opened));
  own.bytes = source_->bytes();
  own.identity = identityOf(*source_);
  if (source_->made()) return Ok{};
  std::vector<Digest> digests;
  VIADUCT_TRY(const auto nothing,
              readUnlessStopped(*source_, [&](std::span<const std::byte> chunk, std::uint64_t) {
                digests.push_back(digestOf(chunk));
                return Wrong();
              }));
  own.digests = encodeDigests(digests);
  return Ok{};
}

Result<Wrong> PipelineFlows::readUnlessStopped(const PinnedStorage& storage,
                                               const PinnedStorage::Visit& visit) {
  VIADUCT_TRY(
      Wrong found,
      storage.read(worker_.agent, chunks(), [&](std::span<std::byte> chunk, std::uint64_t number) {
        return worker_.stop.load() ? Wrong("stopped") : visit(chunk, number);
      }));
  if (!worker_.stop.load()) return found;
  return Error{.code = Code::kCancelled, .operation = "pipeline"};
}

Status PipelineFlows::prepare() {
  if (pipeline().destination() != nullptr && worker_.rank == last())
    VIADUCT_CHECK(openDestination());
  for (const Route& route : routes_)
    for (const End& end : {route.from, route.into})
      if (end.kind != End::Kind::kStorage && end.rank == worker_.rank)
        VIADUCT_CHECK(memories_.make(worker_.agent, end, bytes_));
  return connect();
}

Status PipelineFlows::openDestination() {
  StorageOptions options = worker_.spec.pipeline_data;
  options.bytes = bytes_;
  VIADUCT_TRY(PinnedStorage opened,
              PinnedStorage::destination(worker_.agent, *pipeline().destination(), options));
  destination_ = std::make_unique<PinnedStorage>(std::move(opened));
  const std::string identity = identityOf(*destination_);
  if (identity.empty() || identity != source_identity_) return Ok{};
  return Error{.code = Code::kInvalid,
               .operation = "open the destination",
               .detail = "it is the source",
               .file = pipeline().destination()->path,
               .remedy = "name another file"};
}

Status PipelineFlows::connect() {
  VIADUCT_TRY(Peer self, worker_.agent.self());
  self_.emplace(std::move(self));
  VIADUCT_CHECK(reach(*self_, worker_.rank));
  if (pipeline().processes() == 1) return Ok{};
  const std::uint32_t rank = 1 - worker_.rank;
  const auto& about = worker_.group.roster().members[rank].about;
  VIADUCT_TRY(Peer peer, worker_.agent.importCard(base::bytesOf(about)));
  other_.emplace(std::move(peer));
  return reach(*other_, rank);
}

Status PipelineFlows::reach(const Peer& peer, std::uint32_t rank) const {
  return waitReady(peer, kConnect, worker_.stop, worker_.heard.waiting,
                   [&](const Error& error) { return atRank(error, rank); });
}

Status PipelineFlows::planRoutes() {
  flows_.resize(routes_.size());
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[i];
    if (route.from.rank != worker_.rank) continue;
    const Peer& peer = route.into.rank == worker_.rank ? *self_ : *other_;
    VIADUCT_TRY(const FlowSide from, sideOf(*self_, route.from));
    VIADUCT_TRY(const FlowSide into, sideOf(peer, route.into));
    const bool crosses = route.into.rank != worker_.rank;
    auto flow = Flow::plan(
        worker_.agent, peer,
        {.bytes = bytes_, .chunks = chunks(), .require = crosses ? worker_.spec.net_require : ""},
        from, into);
    if (!flow) return inRoute(std::move(flow).error(), route);
    flows_[i] = std::make_unique<Flow>(*std::move(flow));
  }
  return Ok{};
}

Expected PipelineFlows::contentsOf(const Route& route) const {
  if (route.from.kind == End::Kind::kStorage) return source_contents_;
  return Expected::pattern(chunks(), bytes_, worker_.spec.seed, epoch_,
                           route.from.kind == End::Kind::kRing ? chunks().ring_chunks : 0);
}

// Returns the route whose source determines the bytes that route `i` of the case moves. In a chain,
// that is the first route.
const Route& PipelineFlows::originOf(const Case& one, std::uint32_t i) const {
  return routes_[one.chain ? one.routes.front() : i];
}

Status PipelineFlows::fill(const Case& one) {
  ++epoch_;
  for (const std::uint32_t i : one.routes) VIADUCT_CHECK(memories_.clear(routes_[i].into));
  for (const std::uint32_t i : one.routes)
    if (const Route& route = routes_[i]; &route == &originOf(one, i))
      VIADUCT_CHECK(memories_.fill(route.from, contentsOf(route)));
  return Ok{};
}

Result<PipelineFlows::Checked> PipelineFlows::check(const Case& one) {
  Checked out;
  for (const std::uint32_t i : one.routes) {
    const Route& route = routes_[i];
    if (route.into.rank != worker_.rank) continue;
    VIADUCT_TRY(const auto wrong, mismatchOf(route, contentsOf(originOf(one, i))));
    ++out.transfers;
    if (!wrong) continue;
    out.wrong = fmt::format("damaged bytes at the end of {}: {}", route.name, *wrong);
    return out;
  }
  return out;
}

Result<Wrong> PipelineFlows::mismatchOf(const Route& route, const Expected& expected) {
  if (route.into.kind != End::Kind::kStorage) return memories_.mismatch(route.into, expected);
  return readUnlessStopped(*destination_, [&](std::span<std::byte> chunk, std::uint64_t number) {
    return expected.verify(chunk, number);
  });
}

Status PipelineFlows::run(const Case& one, const Goal& goal, const Moving& moving) {
  std::deque<RingGate> gates;
  std::vector<OwnFlow> own;
  FlowsScene scene{worker_.agent, moving, nullptr, epoch_};
  Neighbours neighbours;
  for (std::size_t k = 0; k < one.routes.size(); ++k) {
    const std::uint32_t i = one.routes[k];
    neighbours.before = std::exchange(neighbours.after, nullptr);
    if (one.chain && k + 1 < one.routes.size())
      neighbours.after = &gates.emplace_back(chunks().countOf(bytes_), placesIn(routes_[i].into));
    if (flows_[i])
      own.push_back({*flows_[i], neighbours});
    else
      scene.other = &*other_;
    if (neighbours.before != nullptr &&
        routes_[i].from.rank != routes_[one.routes[k - 1]].from.rank)
      scene.across = neighbours.before;
  }
  return runAtOnce(own, scene, goal.time);
}

// Returns the number of chunks for which the memory of an end has room.
std::uint64_t PipelineFlows::placesIn(const End& end) const {
  return end.kind == End::Kind::kRing ? chunks().ring_chunks : chunks().countOf(bytes_);
}

std::vector<FlowReport> PipelineFlows::reports(const Case& one) const {
  std::vector<FlowReport> out;
  for (const std::uint32_t i : one.routes) {
    if (!flows_[i]) continue;
    const Flow& flow = *flows_[i];
    const Path path = flow.path();
    // If the case has only one route, its flow may carry several stages, each with its busy time.
    out.push_back({.route = i,
                   .times = flow.times(),
                   .bytes = flow.times() * flow.bytes(),
                   .start_ns = nanosecondsIn(flow.began().time_since_epoch()),
                   .ns = nanosecondsIn(flow.took()),
                   .way = wayOf(path),
                   .busy_ns = one.routes.size() > 1 ? std::vector{nanosecondsIn(flow.busy())}
                                                    : busyTimes(path)});
  }
  return out;
}

std::vector<proof::Claim> PipelineFlows::claims(const Case& one) const {
  std::vector<proof::Claim> out;
  for (const std::uint32_t i : one.routes) {
    if (!flows_[i]) continue;
    const Route& route = routes_[i];
    const bool loads = route.from.kind == End::Kind::kStorage,
               stores = route.into.kind == End::Kind::kStorage;
    // True for copies between memory and storage of one member. Other flows with storage are
    // staged, and their path has a stage for the storage.
    const bool stored = loads != stores && route.from.rank == route.into.rank;
    out.push_back({.peer = route.into.rank,
                   .op = stored && loads ? OpKind::kRead : OpKind::kWrite,
                   .path = flows_[i]->path(),
                   .stored = stored});
  }
  return out;
}

std::uint64_t PipelineFlows::bytesMoved() const {
  std::uint64_t out = 0;
  for (const auto& flow : flows_)
    if (flow) out += flow->allTimes() * flow->bytes();
  return out;
}

}  // namespace viaduct::measure::pipeline
