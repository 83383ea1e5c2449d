#include "measure/pipeline/pipeline_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/fields.h"
#include "host/facts.h"
#include "measure/pipeline/chunks.h"
#include "measure/pipeline/expected.h"
#include "measure/pipeline/flow.h"
#include "measure/pipeline/flows_at_once.h"
#include "measure/pipeline/memories.h"
#include "measure/pipeline/ring_gate.h"
#include "measure/pipeline/routes.h"
#include "measure/rates/share.h"
#include "measure/run/wait_ready.h"
#include "meet/groups/group.h"

namespace viaduct::measure::pipeline {

using namespace std::chrono_literals;

namespace {

// Rank 0 sends this to all members after it has opened the source.
struct Opening {
  Failure failure = {};
  std::uint64_t bytes = 0;
  std::string identity = {};                // of the source, on this host
  std::vector<std::uint64_t> digests = {};  // of the source's chunks; empty: a pattern
};
auto fields(base::Is<Opening> auto& o) {
  return std::tie(o.failure, o.bytes, o.identity, o.digests);
}

struct FlowReport {
  std::uint32_t route = 0;
  std::uint64_t bytes = 0, ns = 0;
  std::string way = {}, path = {};
  std::vector<std::uint64_t> busy_ns = {};  // of each stage of the pipeline that the flow carries
};
auto fields(base::Is<FlowReport> auto& r) {
  return std::tie(r.route, r.bytes, r.ns, r.way, r.path, r.busy_ns);
}

struct CaseReport {
  Failure failure = {};
  std::uint64_t checked = 0;
  std::vector<FlowReport> flows = {};
};
auto fields(base::Is<CaseReport> auto& r) { return std::tie(r.failure, r.checked, r.flows); }

constexpr auto kGatherPatience = 1h;  // for a slow member; a dead one is noticed long before
constexpr auto kConnect = 10s;

class Member {
 public:
  Member(const PipelineRequest& request, const MemberScene& scene, PipelineResult& result)
      : request_(request),
        scene_(scene),
        result_(result),
        rank_(scene.group.roster().rank),
        routes_(routesOf(request.pipeline)),
        cases_(casesOf(routes_, request.pipeline.stages.size())),
        memories_(request.settings, request.storage.chunks, request.memory) {}

  Status run() {
    VIADUCT_CHECK(shareSource());
    VIADUCT_CHECK(allWell(prepare()));
    VIADUCT_CHECK(allWell(planRoutes()));
    beginResult();
    for (std::uint32_t round = 0; round <= request_.rounds; ++round) VIADUCT_CHECK(runRound(round));
    return Ok{};
  }

 private:
  const Pipeline& pipeline() const { return request_.pipeline; }
  const Chunking& chunks() const { return request_.storage.chunks; }
  std::uint32_t last() const { return pipeline().processes() - 1; }

  template <class T>
  Result<std::vector<T>> exchange(const T& own) {
    VIADUCT_TRY(const auto texts,
                scene_.group.gather(base::packed(own), kGatherPatience, scene_.stop));
    std::vector<T> all(texts.size());
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      if (!base::unpack(texts[rank], all[rank]))
        return Error{.code = Code::kProtocol,
                     .operation = "pipeline",
                     .detail = fmt::format("rank {} sent a malformed message", rank)};
    return all;
  }
  Error atRank(Error error, std::uint32_t rank) const {
    if (rank != rank_ && error.peer.empty())
      error.peer = fmt::format("rank {} ({})", rank, scene_.group.roster().members[rank].name);
    return error;
  }
  // All members end with the first failure of any of them.
  template <class T>
  Status firstFailure(const std::vector<T>& by_rank) const {
    for (std::uint32_t rank = 0; rank < by_rank.size(); ++rank)
      if (by_rank[rank].failure) return atRank(*by_rank[rank].failure, rank);
    return Ok{};
  }
  Status allWell(Status mine) {
    VIADUCT_TRY(const auto all,
                exchange(CaseReport{.failure = mine ? Failure{} : Failure{mine.error()}}));
    return firstFailure(all);
  }

  // Rank 0 opens the source. Then all members know the size and the contents.
  Status shareSource() {
    Opening own;
    if (rank_ == 0)
      if (auto opened = openSource(own); !opened) own.failure = std::move(opened).error();
    VIADUCT_TRY(auto all, exchange(own));
    VIADUCT_CHECK(firstFailure(all));
    result_.bytes = all.front().bytes;
    source_identity_ = all.front().identity;
    source_contents_ =
        all.front().digests.empty()
            ? Expected::pattern(chunks(), result_.bytes, request_.storage.seed,
                                PinnedStorage::kSourceEpoch)
            : Expected::digests(chunks(), result_.bytes, std::move(all.front().digests));
    return Ok{};
  }
  Status openSource(Opening& own) {
    const std::uint64_t wanted = request_.storage.bytes;
    own.bytes = wanted != 0 ? wanted : kUsualBytes;
    if (pipeline().source() == nullptr) return Ok{};
    say("opening the source");
    VIADUCT_TRY(PinnedStorage opened,
                PinnedStorage::source(scene_.agent, *pipeline().source(), request_.storage));
    source_ = std::make_unique<PinnedStorage>(std::move(opened));
    own.bytes = source_->bytes();
    own.identity = identityOf(*source_);
    if (source_->made()) return Ok{};
    VIADUCT_TRY(const auto nothing,
                readUnlessStopped(*source_, [&](std::span<const std::byte> chunk, std::uint64_t) {
                  own.digests.push_back(digestOf(chunk));
                  return std::optional<std::string>();
                }));
    return Ok{};
  }
  Result<std::optional<std::string>> readUnlessStopped(const PinnedStorage& storage,
                                                       const PinnedStorage::Visit& visit) {
    VIADUCT_TRY(auto found,
                storage.read(scene_.agent, chunks(),
                             [&](std::span<const std::byte> chunk, std::uint64_t number) {
                               if (scene_.stop.load()) return std::optional<std::string>("stopped");
                               return visit(chunk, number);
                             }));
    if (!scene_.stop.load()) return found;
    return Error{.code = Code::kCancelled, .operation = "pipeline"};
  }
  static std::string identityOf(const PinnedStorage& storage) {
    const std::string file = storage.identity();
    return file.empty() ? file : fmt::format("{} {}", host::bootId(), file);
  }

  // Opens the destination, allocates the memory, and connects to the other member.
  Status prepare() {
    if (pipeline().destination() != nullptr && rank_ == last()) VIADUCT_CHECK(openDestination());
    for (const Route& route : routes_)
      for (const End& end : {route.from, route.into})
        if (end.kind != End::Kind::kStorage && end.rank == rank_)
          VIADUCT_CHECK(memories_.make(scene_.agent, end, result_.bytes));
    return connect();
  }
  Status openDestination() {
    StorageOptions options = request_.storage;
    options.bytes = result_.bytes;
    VIADUCT_TRY(PinnedStorage opened,
                PinnedStorage::destination(scene_.agent, *pipeline().destination(), options));
    destination_ = std::make_unique<PinnedStorage>(std::move(opened));
    const std::string identity = identityOf(*destination_);
    if (identity.empty() || identity != source_identity_) return Ok{};
    return Error{.code = Code::kInvalid,
                 .operation = "open the destination",
                 .detail = "it is the source",
                 .file = pipeline().destination()->path,
                 .remedy = "name another file"};
  }
  Status connect() {
    VIADUCT_TRY(Peer self, scene_.agent.self());
    self_.emplace(std::move(self));
    VIADUCT_CHECK(reach(*self_, rank_));
    if (pipeline().processes() == 1) return Ok{};
    const std::uint32_t rank = 1 - rank_;
    const auto& about = scene_.group.roster().members[rank].about;
    VIADUCT_TRY(Peer peer, scene_.agent.importCard(base::bytesOf(about)));
    other_.emplace(std::move(peer));
    return reach(*other_, rank);
  }
  Status reach(const Peer& peer, std::uint32_t rank) const {
    return waitReady(peer, kConnect, scene_.stop, scene_.progress.waiting,
                     [&](const Error& error) { return atRank(error, rank); });
  }

  Status planRoutes() {
    flows_.resize(routes_.size());
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      const Route& route = routes_[i];
      if (route.from.rank != rank_) continue;
      const Peer& peer = route.into.rank == rank_ ? *self_ : *other_;
      VIADUCT_TRY(const FlowSide from, sideOf(*self_, route.from));
      VIADUCT_TRY(const FlowSide into, sideOf(peer, route.into));
      const bool crosses = route.into.rank != rank_;
      auto flow = Flow::plan(
          scene_.agent, peer,
          {.bytes = result_.bytes, .chunks = chunks(), .require = crosses ? request_.require : ""},
          from, into);
      if (!flow) return inRoute(std::move(flow).error(), route);
      flows_[i] = std::make_unique<Flow>(*std::move(flow));
    }
    return Ok{};
  }

  static Error inRoute(Error error, const Route& route) {
    error.operation = fmt::format("{}: {}", route.name, error.operation);
    return error;
  }
  static Result<FlowSide> sideOf(const Peer& peer, const End& end) {
    VIADUCT_TRY(PinInfo pin, peer.waitPin(end.label, kConnect));
    return FlowSide{std::move(pin), end.kind == End::Kind::kRing};
  }

  void beginResult() {
    for (std::size_t i = 0; i < pipeline().stages.size(); ++i)
      result_.rates.stages.push_back(
          {.name = pipeline().stages[i], .route = pipeline().routeOf(i)});
  }

  // Round 0 warms up.
  Status runRound(std::uint32_t round) {
    std::vector<std::vector<CaseReport>> reports;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      sayCase(round, i);
      const std::uint64_t epoch = PinnedStorage::kSourceEpoch + 1 + round * cases_.size() + i;
      VIADUCT_TRY(auto by_rank, runCase(cases_[i], epoch));
      reports.push_back(std::move(by_rank));
    }
    if (round != 0) keep(reports);
    return Ok{};
  }
  void say(const std::string& what) const {
    if (scene_.progress.step) scene_.progress.step(0, what);
  }
  void sayCase(std::uint32_t round, std::size_t i) const {
    if (!scene_.progress.step) return;
    const std::string part =
        round == 0 ? "warm-up" : fmt::format("round {} of {}", round, request_.rounds);
    scene_.progress.step(round * cases_.size() + i, fmt::format("{}: {}", part, cases_[i].name));
  }

  Result<std::vector<CaseReport>> runCase(const Case& one, std::uint64_t epoch) {
    VIADUCT_CHECK(allWell(fill(one, epoch)));
    CaseReport own;
    auto moved = move(one, epoch, own);
    if (!moved) own.failure = std::move(moved).error();
    VIADUCT_TRY(auto moved_by_rank, exchange(own));
    VIADUCT_CHECK(firstFailure(moved_by_rank));
    CaseReport checks;
    if (auto right = check(one, epoch, checks); !right) checks.failure = std::move(right).error();
    VIADUCT_TRY(const auto checked_by_rank, exchange(checks));
    VIADUCT_CHECK(firstFailure(checked_by_rank));
    for (const CaseReport& report : checked_by_rank) result_.checked += report.checked;
    return moved_by_rank;
  }

  Expected contentsOf(const Route& route, std::uint64_t epoch) const {
    if (route.from.kind == End::Kind::kStorage) return source_contents_;
    return Expected::pattern(chunks(), result_.bytes, request_.storage.seed, epoch,
                             route.from.kind == End::Kind::kRing ? chunks().ring_chunks : 0);
  }
  // Returns the route whose source has the contents that route `i` of the case moves.
  const Route& originOf(const Case& one, std::uint32_t i) const {
    return routes_[one.chain ? one.routes.front() : i];
  }
  // Writes fresh contents into source memory, and zeros into all other memory. A destination file
  // has other contents than those expected: each case writes an epoch of its own, and the pipeline
  // follows a store.
  Status fill(const Case& one, std::uint64_t epoch) {
    for (const std::uint32_t i : one.routes) VIADUCT_CHECK(memories_.clear(routes_[i].into));
    for (const std::uint32_t i : one.routes)
      if (const Route& route = routes_[i]; &route == &originOf(one, i))
        VIADUCT_CHECK(memories_.fill(route.from, contentsOf(route, epoch)));
    return Ok{};
  }
  Status check(const Case& one, std::uint64_t epoch, CaseReport& report) {
    for (const std::uint32_t i : one.routes) {
      const Route& route = routes_[i];
      if (route.into.rank != rank_) continue;
      VIADUCT_TRY(const auto wrong, mismatchOf(route, contentsOf(originOf(one, i), epoch)));
      if (wrong)
        return Error{
            .code = Code::kDevice,
            .operation = one.name,
            .detail = fmt::format("damaged bytes at the end of {}: {}", route.name, *wrong)};
      ++report.checked;
    }
    return Ok{};
  }
  Result<std::optional<std::string>> mismatchOf(const Route& route, const Expected& expected) {
    if (route.into.kind != End::Kind::kStorage) return memories_.mismatch(route.into, expected);
    return readUnlessStopped(*destination_,
                             [&](std::span<const std::byte> chunk, std::uint64_t number) {
                               return expected.check(chunk, number);
                             });
  }

  // Runs this member's flows of the case, at the same time as those of the other member.
  Status move(const Case& one, std::uint64_t epoch, CaseReport& report) {
    std::deque<RingGate> gates;
    std::vector<OwnFlow> own;
    FlowsScene scene{scene_.agent, scene_.group, scene_.stop, nullptr, epoch};
    Neighbours neighbours;
    for (std::size_t k = 0; k < one.routes.size(); ++k) {
      const std::uint32_t i = one.routes[k];
      neighbours.before = std::exchange(neighbours.after, nullptr);
      if (one.chain && k + 1 < one.routes.size())
        neighbours.after =
            &gates.emplace_back(chunks().countOf(result_.bytes), placesIn(routes_[i].into));
      if (flows_[i])
        own.push_back({*flows_[i], neighbours});
      else
        scene.other = &*other_;
      if (neighbours.before != nullptr &&
          routes_[i].from.rank != routes_[one.routes[k - 1]].from.rank)
        scene.across = neighbours.before;
    }
    VIADUCT_CHECK(runAtOnce(own, scene, request_.duration));
    for (const std::uint32_t i : one.routes)
      if (flows_[i]) report.flows.push_back(reportOf(i, one.routes.size() > 1, *flows_[i]));
    return Ok{};
  }
  // Returns the number of chunks for which the memory of an end has places.
  std::uint64_t placesIn(const End& end) const {
    return end.kind == End::Kind::kRing ? chunks().ring_chunks : chunks().countOf(result_.bytes);
  }
  // `leg`: the flow carries one stage of several.
  static FlowReport reportOf(std::uint32_t route, bool leg, const Flow& flow) {
    const Path path = flow.path();
    const auto busy = static_cast<std::uint64_t>(flow.busy().count());
    return {.route = route,
            .bytes = flow.times() * flow.bytes(),
            .ns = static_cast<std::uint64_t>(flow.took().count()),
            .way = wayOf(path),
            .path = path.text(),
            .busy_ns = leg ? std::vector{busy} : busyTimes(path)};
  }

  // Adds a round to the result.
  void keep(const std::vector<std::vector<CaseReport>>& reports) {
    for (std::size_t i = 0; i < reports.size(); ++i) {
      std::vector<FlowReport> flows;  // in the order of the routes
      for (const CaseReport& report : reports[i])
        flows.insert(flows.end(), report.flows.begin(), report.flows.end());
      std::ranges::sort(flows, {}, &FlowReport::route);
      if (cases_[i].chain) keepWhole(flows);
      for (const FlowReport& flow : flows)
        if (!cases_[i].chain) keepStage(flow, cases_[i].routes.size() == 1);
    }
    ++result_.rounds;
  }
  static double per(std::uint64_t amount, std::uint64_t ns) {
    return static_cast<double>(amount) / static_cast<double>(std::max<std::uint64_t>(ns, 1));
  }
  void keepStage(const FlowReport& flow, bool alone) {
    StageRates& stage = result_.rates.stages[flow.route];
    (alone ? stage.alone : stage.together).push_back(per(flow.bytes, flow.ns));
    if (alone) stage.way = flow.way;
  }
  void keepWhole(const std::vector<FlowReport>& legs) {
    PipelineRates& rates = result_.rates;
    std::uint64_t ns = 0;
    std::vector<std::uint64_t> busy;
    rates.path.clear();
    for (std::size_t i = 0; i < legs.size(); ++i) {
      ns = std::max(ns, legs[i].ns);
      busy.insert(busy.end(), legs[i].busy_ns.begin(), legs[i].busy_ns.end());
      rates.path +=
          (i == 0 ? "" : fmt::format(" -> {} -> ", pipeline().places[i].text)) + legs[i].path;
    }
    rates.whole.push_back(per(legs.back().bytes, ns));
    if (busy.size() != rates.stages.size()) return;
    for (std::size_t i = 0; i < busy.size(); ++i) rates.stages[i].busy.push_back(per(busy[i], ns));
  }

  const PipelineRequest& request_;
  const MemberScene& scene_;
  PipelineResult& result_;
  const std::uint32_t rank_;
  const std::vector<Route> routes_;
  const std::vector<Case> cases_;
  std::unique_ptr<PinnedStorage> source_, destination_;
  std::string source_identity_;
  Expected source_contents_;
  Memories memories_;
  std::optional<Peer> self_, other_;
  std::vector<std::unique_ptr<Flow>> flows_;  // by route; null: the other member initiates it
};

}  // namespace

std::vector<Option> optionsOf(const PipelineRequest& request) {
  return {{"pipeline", request.pipeline.text},
          {"require of net", request.require},
          {"create_source", fmt::to_string(request.storage.create_source)},
          {"VIADUCT_STAGING_CHUNK", fmt::to_string(request.storage.chunks.chunk_bytes)},
          {"VIADUCT_STAGING_CHUNKS", fmt::to_string(request.storage.chunks.ring_chunks)},
          {"overwrite", request.storage.overwrite ? "yes" : "no"}};
}

std::size_t stepsOf(const PipelineRequest& request) {
  const Pipeline& pipeline = request.pipeline;
  return (request.rounds + std::size_t{1}) *
         casesOf(routesOf(pipeline), pipeline.stages.size()).size();
}

Status runMember(const PipelineRequest& request, const MemberScene& scene, PipelineResult& result) {
  return Member(request, scene, result).run();
}

}  // namespace viaduct::measure::pipeline
