#include "measure/result/pipeline_rates.h"

#include <algorithm>

#include "measure/result/statistics.h"

namespace viaduct::measure::pipeline {
namespace {

std::optional<Slowest> slowestOf(const PipelineRates& rates,
                                 std::vector<double> StageRates::* values) {
  std::vector<double> medians;
  for (const StageRates& stage : rates.stages) {
    if ((stage.*values).empty()) return std::nullopt;
    medians.push_back(median(stage.*values));
  }
  if (medians.empty()) return std::nullopt;
  Slowest out;
  for (std::size_t i = 1; i < medians.size(); ++i)
    if (medians[i] < medians[out.stage]) out.stage = i;
  out.gb_per_s = medians[out.stage];
  for (std::size_t i = 0; i < medians.size(); ++i)
    if (i != out.stage && medians[i] <= out.gb_per_s * (1 + kTie)) out.ties.push_back(i);
  if (!rates.whole.empty() && out.gb_per_s > 0) out.efficiency = median(rates.whole) / out.gb_per_s;
  return out;
}

std::optional<std::size_t> busiestOf(const PipelineRates& rates) {
  std::optional<std::size_t> out;
  double most = 0;
  for (std::size_t i = 0; i < rates.stages.size(); ++i) {
    const double busy = median(rates.stages[i].busy);
    if (busy <= most) continue;
    most = busy;
    out = i;
  }
  return out;
}

StageRates& stageOf(const StageResult& of, std::vector<StageRates>& stages) {
  const auto at = std::ranges::find(stages, of.name, &StageRates::name);
  if (at != stages.end()) return *at;
  return stages.emplace_back(StageRates{.name = of.name, .route = of.route});
}

void addResult(StagesRun run, const StageResult& of, StageRates& stage) {
  if (run == StagesRun::kAlone) stage.way = of.path;
  if (run == StagesRun::kAlone) stage.alone = of.gb_per_s;
  if (run == StagesRun::kTogether) stage.together = of.gb_per_s;
  if (run == StagesRun::kWhole) stage.busy = of.busy;
}

}  // namespace

PipelineRates ratesOf(std::span<const Row> rows) {
  PipelineRates out;
  for (const Row& row : rows) {
    const auto* const kind = row.as<PipelineRow>();
    if (kind == nullptr) continue;
    for (const StageResult& of : kind->stages) addResult(kind->run, of, stageOf(of, out.stages));
    if (kind->run == StagesRun::kWhole) out.whole = row.gb_per_s_parts;
  }
  return out;
}

Conclusions conclude(const PipelineRates& rates) {
  return {.alone = slowestOf(rates, &StageRates::alone),
          .together = slowestOf(rates, &StageRates::together),
          .busiest = busiestOf(rates)};
}

}  // namespace viaduct::measure::pipeline
