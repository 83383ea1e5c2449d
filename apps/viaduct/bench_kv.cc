#include "viaduct/bench_kv.h"

#include <fmt/format.h>
#include <viaduct/kv_models.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "base/sizes.h"
#include "measure/workload/machine.h"
#include "measure/workload/replay_plan.h"
#include "measure/workload/trace_format.h"
#include "viaduct/bench_progress.h"
#include "viaduct/flags.h"

namespace viaduct::app {
namespace {

using measure::KvPoint;

constexpr std::uint64_t kMostPool = 64 * base::kGiB;  // the limit of CollectiveX
constexpr std::uint32_t kTableSets = 4;
constexpr std::uint32_t kTrials = 3, kWarmBursts = 2, kTimedBursts = 8;
// The part of this host's memory for pools. The kernel, agents and other programs need the rest.
constexpr double kPartOfMemory = 0.6;

std::uint64_t budgetOf(const KvOptions& o, bool local) {
  if (o.pool_budget != 0) return o.pool_budget;
  const auto available = static_cast<double>(measure::memoryOfThisHost()) * kPartOfMemory;
  if (available <= 0) return kMostPool;
  return std::min(kMostPool, static_cast<std::uint64_t>(available / (local ? 2 : 1)));
}

std::uint64_t poolOf(const KvPoint& point) {
  return std::max(point.source.bytes, point.destination.bytes);
}

// A point that fits into the budget. To fit, a point of one request may give up table sets and free
// blocks.
struct Fitting {
  std::optional<KvPoint> point = {};
  std::string remark = {};
};

Result<Fitting> fitted(const KvPoint& asked, std::uint64_t budget, bool may_shrink) {
  VIADUCT_TRY(KvPoint point, completed(asked, measure::usualKvSlack(asked.requests)));
  const std::uint64_t whole = poolOf(point);
  const auto what =
      fmt::format("{}, {}", textOf(point),
                  asked.requests == 1 ? "1 request" : fmt::format("{} requests", asked.requests));
  if (whole <= budget) return Fitting{.point = point};
  const std::string why = fmt::format("{}: a pool needs {}, and {} is the budget", what,
                                      base::roundedSize(whole), base::showSize(budget));
  if (!may_shrink) return Fitting{.remark = why + "; left out"};
  for (const double slack : {measure::usualKvSlack(asked.requests), 1.0})
    for (std::uint32_t sets = kTableSets; sets >= 1; --sets) {
      KvPoint smaller = asked;
      smaller.sets = sets;
      VIADUCT_TRY(smaller, completed(std::move(smaller), slack));
      if (poolOf(smaller) > budget) continue;
      return Fitting{.point = smaller,
                     .remark = fmt::format("{}; measured with {} of {} table sets{}", why, sets,
                                           kTableSets, slack > 1 ? "" : " and no free blocks")};
    }
  return badFlag("--tokens", why + ", even for one table set",
                 "use fewer tokens, or a larger --pool-budget");
}

Result<KvPoint> pointOf(const KvOptions& o, const KvModel& model, std::uint32_t tokens,
                        std::uint32_t block, std::uint32_t requests) {
  const std::uint32_t tp_to = o.tp_to == 0 ? o.tp : o.tp_to;
  measure::KvEnd end{.tp = o.tp, .block = block};
  end.order = o.order.value_or(o.tp == tp_to ? KvOrder::kNhd : KvOrder::kHnd);
  end.arrangement =
      o.arrangement.value_or(model.own_blocks ? KvArrangement::kRows : KvArrangement::kApart);
  KvPoint point{.model = model.name,
                .tokens = tokens,
                .requests = requests,
                .sets = kTableSets,
                .source = end,
                .destination = end,
                .seed = o.spec.seed};
  point.destination.tp = tp_to;
  if (o.block_to != 0) point.destination.block = o.block_to;
  return point;
}

void addTrials(const KvOptions& o, const std::string& backend, const KvPoint& point,
               std::vector<measure::Workload>& rows) {
  const std::uint32_t trials = o.has("repeat") ? o.spec.repeat : kTrials;
  for (std::uint32_t trial = 0; trial < trials; ++trial)
    for (const bool second : {false, true}) {
      measure::Workload row{.backend = backend,
                            .op = o.op,
                            .block_bytes = point.request_bytes,
                            .batch = point.requests,
                            .warm_iterations = o.has("warmup") ? 0 : kWarmBursts,
                            .iterations = o.has("duration") ? 0 : kTimedBursts,
                            .kv = point};
      if (o.has("iterations")) row.iterations = o.iterations;
      row.kv->bulk = second != (trial % 2 == 1);
      row.kv->trial = trial;
      row.kv->trials = trials;
      rows.push_back(std::move(row));
    }
}

constexpr std::uint64_t kTracePool = 4 * base::kGiB;

// Returns the bytes of a request of `tokens` tokens. Counts at most `blocks` blocks of each cache.
std::uint64_t bytesOf(const KvLayout& layout, std::uint64_t blocks, std::uint64_t tokens) {
  std::uint64_t out = 0;
  for (const KvGroup& group : layout.groups)
    for (const KvCache& cache : group.caches)
      out += std::min(blocks, kvBlocksOf(group, tokens)) * cache.layers.size() * cache.tensors *
             kvPageBytes(layout, group, cache);
  return out;
}

// Both ends have the same layout. The size of their pools decides which blocks of a request are
// hits.
Result<KvPoint> traceEnds(const KvOptions& o, const KvModel& model) {
  if (model.own_blocks)
    return badFlag("MODEL",
                   fmt::format("{} has several block tables, and a replay has one", model.name),
                   "choose another model");
  const std::uint32_t block = o.blocks.empty() ? 16 : o.blocks.front();
  const std::uint32_t id_tokens = o.trace.requests->id_tokens;
  if (o.blocks.size() > 1) return badFlag("--block", "a replay has one block size", "give one");
  if (id_tokens != 0 && id_tokens % block != 0 && block % id_tokens != 0)
    return badFlag("--block", fmt::format("a hash id stands for {} tokens", id_tokens),
                   fmt::format("give a size that divides them, or a multiple of {}", id_tokens));
  VIADUCT_TRY(KvPoint point, pointOf(o, model, std::max(block, id_tokens), block, 1));
  point.source.pool = point.destination.pool = 1;
  VIADUCT_TRY(const KvLayout one, layoutOf(point, measure::KvSide::kSource, 0));
  const std::uint64_t budget = o.pool_budget == 0 ? kTracePool : o.pool_budget;
  const std::uint64_t pool = budget / kvExtent(one).bytes;
  if (pool == 0)
    return badFlag("--pool_budget",
                   fmt::format("a block has {}", base::showSize(kvExtent(one).bytes)),
                   "give more memory");
  for (measure::KvEnd* end : {&point.source, &point.destination}) {
    end->pool = pool;
    end->bytes = pool * kvExtent(one).bytes;
  }
  point.sets = 1;
  point.tokens = 0;
  return point;
}

// A plan names each block of each request twice, in 4 bytes.
constexpr std::uint64_t kMostPlannedBlocks = std::uint64_t{1} << 27U;
constexpr double kMostReplaySeconds = 366 * 86400.0;

// Refuses a replay whose plan would need too much memory, or that would never end.
Status canBeReplayed(const measure::KvTrace& trace, std::uint32_t block) {
  std::uint64_t blocks = 0;
  for (const measure::TraceRequest& request : trace.requests->requests)
    blocks += request.input_length / block + 1;
  if (blocks > kMostPlannedBlocks)
    return badFlag("FILE",
                   fmt::format("{} requests need {} blocks, and a plan has room for {}",
                               trace.requests->requests.size(), blocks, kMostPlannedBlocks),
                   "replay a part of it with --requests, or give a larger --block");
  const double seconds = secondsOf(*trace.requests) / trace.speed;
  if (seconds <= kMostReplaySeconds) return Ok{};
  return badFlag(
      "FILE",
      fmt::format("the replay would last {:.0f} days, and a year is the most", seconds / 86400),
      "give a higher --speed, or replay a part of it with --requests");
}

// Returns a remark that names the format in which the file was read.
std::string formatRemark(const measure::KvTrace& trace) {
  const measure::Trace& all = *trace.requests;
  const bool ids = std::ranges::any_of(
      all.requests, [](const measure::TraceRequest& one) { return !one.hash_ids.empty(); });
  return fmt::format("{} is a trace in {}'s format: {} requests in {:.0f} s{}", trace.name,
                     factsOf(all.format).owner, all.requests.size(), secondsOf(all),
                     ids                  ? ""
                     : all.id_tokens == 0 ? "; no prefix ids in this format: no hits"
                                          : "; no request has prefix ids: no hits");
}

Result<PlannedRows> traceRows(const KvOptions& o, const std::vector<std::string>& backends,
                              PreparationLine& line) {
  const auto model = kvModel(o.model);
  if (!model) return badFlag("MODEL", model.error().detail, model.error().remedy);
  VIADUCT_TRY(const KvPoint point, traceEnds(o, *model));
  VIADUCT_TRY(const KvLayout layout, layoutOf(point, measure::KvSide::kSource, 0));
  measure::KvTrace trace = o.trace;
  trace.prefill_rate = static_cast<double>(o.prefill_rate);
  VIADUCT_CHECK(canBeReplayed(trace, point.source.block));
  const auto plan =
      planReplay(*trace.requests, point.source.pool, point.source.block, trace.speed,
                 [&](std::uint64_t planned) { line.tick("planning requests", planned); });
  std::uint64_t bytes = 0;
  for (const measure::ReplayRequest& request : plan.requests)
    bytes += bytesOf(layout, request.source.size(), request.tokens);
  PlannedRows out{.remarks = {formatRemark(trace)}};
  const std::string pool =
      fmt::format("a pool of {} has room for {} tokens", base::roundedSize(point.source.bytes),
                  point.source.pool * point.source.block);
  if (plan.requests.empty())
    return badFlag("FILE", "each request is too large: " + pool, "give a larger --pool-budget");
  if (plan.left_out != 0)
    out.remarks.push_back(fmt::format("{} of {} requests are left out: {}", plan.left_out,
                                      trace.requests->requests.size(), pool));
  for (const std::string& backend : backends)
    out.rows.push_back({.backend = backend,
                        .op = o.op,
                        .block_bytes = std::max<std::uint64_t>(bytes / plan.requests.size(), 1),
                        .batch = 1,
                        .kv = point,
                        .trace = trace});
  return out;
}

// Sets the rate and the duration of a run that replays a trace.
void setTraceTimes(measure::Spec& spec) {
  if (spec.rows.empty()) return;
  const auto& trace = spec.rows.front().trace;
  if (!trace) return;
  const double seconds = secondsOf(*trace->requests) / trace->speed;
  spec.duration = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::max(seconds, 1e-3)));
  if (seconds > 0) spec.rate = static_cast<double>(trace->requests->requests.size()) / seconds;
}

struct KvSizes {
  std::uint32_t tokens = 0, block = 0, requests = 0;
};

// Each number of tokens with each block size and each number of requests.
std::vector<KvSizes> sizesOf(const KvOptions& o, const KvModel& model) {
  std::vector<std::uint32_t> blocks = o.blocks, requests = o.requests;
  if (blocks.empty()) blocks = {model.own_blocks ? 0U : 16U};
  if (requests.empty()) requests = {1};
  std::vector<KvSizes> out;
  for (const std::uint32_t tokens : o.tokens)
    for (const std::uint32_t block : blocks)
      for (const std::uint32_t count : requests) out.push_back({tokens, block, count});
  return out;
}

// The points that fit into `budget`.
Result<std::vector<KvPoint>> pointsOf(const KvOptions& o, const KvModel& model,
                                      std::uint64_t budget, std::vector<std::string>& remarks) {
  const auto sizes = sizesOf(o, model);
  const std::uint32_t fewest = std::ranges::min(sizes, {}, &KvSizes::requests).requests;
  std::vector<KvPoint> out;
  for (const KvSizes& one : sizes) {
    VIADUCT_TRY(const KvPoint asked, pointOf(o, model, one.tokens, one.block, one.requests));
    VIADUCT_TRY(Fitting fits, fitted(asked, budget, one.requests == fewest));
    if (!fits.remark.empty()) remarks.push_back(std::move(fits.remark));
    if (fits.point) out.push_back(*std::move(fits.point));
  }
  return out;
}

Result<PlannedRows> kvRowsOf(const KvOptions& o, const std::vector<std::string>& backends,
                             bool local) {
  const auto model = kvModel(o.model);
  if (!model) return badFlag("MODEL", model.error().detail, model.error().remedy);
  if (model->own_blocks && (!o.blocks.empty() || o.block_to != 0))
    return badFlag("--block", fmt::format("{} prescribes its blocks", model->name), "leave it out");
  PlannedRows out;
  VIADUCT_TRY(const auto points, pointsOf(o, *model, budgetOf(o, local), out.remarks));
  for (const std::string& backend : backends)
    for (const KvPoint& point : points) addTrials(o, backend, point, out.rows);
  for (const measure::Workload& row : out.rows) VIADUCT_CHECK(check(row));
  return out;
}

}  // namespace

PlanOrProblems planKv(const KvOptions& o, const Settings& settings) {
  if (o.model.empty()) return {};  // requireFlags() reports the missing model
  KvOptions whole = o;
  whole.spec.repeat = 1;  // trials are rows of their own
  return planRows(whole, settings,
                  {.rows = [&](const auto& backends, const measure::Layout&, bool local) {
                    return kvRowsOf(o, backends, local);
                  }});
}

PlanOrProblems planKvTrace(const KvOptions& o, const Settings& settings) {
  // A wrong flag is reported without reading the trace, which may be large.
  if (o.model.empty() || o.trace_file.empty() || !o.unread.empty()) return {};
  PreparationLine line;
  measure::TraceReading reading = o.reading;
  reading.progress = [&](std::uint64_t done) { line.tick("reading requests", done); };
  auto read = readTrace(o.trace_file, reading);
  if (!read) return {.problems = {std::move(read).error()}};
  KvOptions whole = o;
  whole.trace.name = o.trace_file;
  whole.trace.requests = std::make_shared<const measure::Trace>(std::move(read->trace));
  PlanOrProblems out =
      planRows(whole, settings, {.rows = [&](const auto& backends, const measure::Layout&, bool) {
                 return traceRows(whole, backends, line);
               }});
  std::ranges::move(read->remarks, std::back_inserter(out.plan.remarks));
  setTraceTimes(out.plan.run.spec);
  return out;
}

}  // namespace viaduct::app
