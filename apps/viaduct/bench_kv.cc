#include "viaduct/bench_kv.h"

#include <fmt/format.h>
#include <viaduct/kv_models.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/sizes.h"
#include "measure/load/machine.h"
#include "viaduct/flags.h"

namespace viaduct::app {
namespace {

using measure::KvPoint;

constexpr std::uint64_t kMostPool = 64 * base::kGiB;  // of CollectiveX
constexpr std::uint32_t kTableSets = 4;
constexpr std::uint32_t kTrials = 3, kWarmBursts = 2, kTimedBursts = 8;
// The kernel, the agents and other programs need the rest.
constexpr double kPartOfMemory = 0.6;

std::uint64_t budgetOf(const BenchOptions& o, bool local) {
  if (o.kv.pool_budget != 0) return o.kv.pool_budget;
  const auto available = static_cast<double>(measure::memoryOfThisHost()) * kPartOfMemory;
  if (available <= 0) return kMostPool;
  return std::min(kMostPool, static_cast<std::uint64_t>(available / (local ? 2 : 1)));
}

std::uint64_t poolOf(const KvPoint& point) {
  return std::max(point.source.bytes, point.destination.bytes);
}

// A point that fits into the budget. A point of one request may give up table sets and free blocks.
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
                                      base::showSize(whole), base::showSize(budget));
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

Result<KvPoint> pointOf(const BenchOptions& o, const KvModel& model, std::uint32_t tokens,
                        std::uint32_t block, std::uint32_t requests) {
  const KvOptions& kv = o.kv;
  const std::uint32_t tp_to = kv.tp_to == 0 ? kv.tp : kv.tp_to;
  measure::KvEnd end{.tp = kv.tp, .block = block};
  end.order = kv.order.value_or(kv.tp == tp_to ? KvOrder::kNhd : KvOrder::kHnd);
  end.arrangement =
      kv.arrangement.value_or(model.own_blocks ? KvArrangement::kRows : KvArrangement::kApart);
  KvPoint point{.model = model.name,
                .tokens = tokens,
                .requests = requests,
                .sets = kTableSets,
                .source = end,
                .destination = end,
                .seed = o.spec.seed};
  point.destination.tp = tp_to;
  if (kv.block_to != 0) point.destination.block = kv.block_to;
  return point;
}

void addTrials(const BenchOptions& o, const std::string& backend, const KvPoint& point,
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

}  // namespace

Result<KvRows> kvRowsOf(const BenchOptions& o, const std::vector<std::string>& backends,
                        bool local) {
  auto model = kvModel(o.kv.model);
  if (!model) return badFlag("--kv", model.error().detail, model.error().remedy);
  if (model->own_blocks && (!o.kv.blocks.empty() || o.kv.block_to != 0))
    return badFlag("--block", fmt::format("{} prescribes its blocks", model->name), "leave it out");
  std::vector<std::uint32_t> blocks = o.kv.blocks, requests = o.kv.requests;
  if (blocks.empty()) blocks = {model->own_blocks ? 0U : 16U};
  if (requests.empty()) requests = {1};
  const std::uint32_t fewest = std::ranges::min(requests);
  const std::uint64_t budget = budgetOf(o, local);
  KvRows out;
  std::vector<KvPoint> points;
  for (const std::uint32_t tokens : o.kv.tokens)
    for (const std::uint32_t block : blocks)
      for (const std::uint32_t count : requests) {
        VIADUCT_TRY(const KvPoint asked, pointOf(o, *model, tokens, block, count));
        VIADUCT_TRY(Fitting fits, fitted(asked, budget, count == fewest));
        if (!fits.remark.empty()) out.remarks.push_back(std::move(fits.remark));
        if (fits.point) points.push_back(*std::move(fits.point));
      }
  for (const std::string& backend : backends)
    for (const KvPoint& point : points) addTrials(o, backend, point, out.rows);
  for (const measure::Workload& row : out.rows) VIADUCT_CHECK(check(row));
  return out;
}

}  // namespace viaduct::app
