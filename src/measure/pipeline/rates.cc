#include "measure/pipeline/rates.h"

#include "measure/stats/statistics.h"

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

}  // namespace

Conclusions conclude(const PipelineRates& rates) {
  return {.alone = slowestOf(rates, &StageRates::alone),
          .together = slowestOf(rates, &StageRates::together),
          .busiest = busiestOf(rates)};
}

}  // namespace viaduct::measure::pipeline
