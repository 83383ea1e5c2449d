#include "measure/result/pipeline_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/lists.h"
#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/pipeline_rates.h"
#include "measure/result/statistics.h"
#include "measure/result/text.h"

namespace viaduct::measure::pipeline {
namespace {

std::string spreadOf(const std::vector<double>& values) {
  return percent(values.empty() ? std::nullopt : std::optional(spread(values)));
}

constexpr std::array kColumns{base::words("stage"),
                              base::words("from -> to", base::Narrow::kBelow),
                              base::words("path", base::Narrow::kBelow),
                              base::figure("alone GB/s"),
                              base::figure("+/-"),
                              base::figure("together"),
                              base::figure("+/-"),
                              base::figure("pipeline"),
                              base::figure("+/-"),
                              base::figure("busy")};

std::vector<base::TextRow> stageRows(const PipelineRates& rates) {
  std::vector<base::TextRow> rows;
  rows.reserve(rates.stages.size());
  for (const StageRates& stage : rates.stages)
    rows.push_back(
        {{stage.name, stage.route, stage.way, digits(middle(stage.alone)), spreadOf(stage.alone),
          digits(middle(stage.together)), spreadOf(stage.together), digits(middle(rates.whole)),
          spreadOf(rates.whole), percent(middle(stage.busy))}});
  return rows;
}

std::string nameAt(const PipelineRates& rates, std::size_t stage) {
  return rates.stages[stage].name;
}

std::vector<std::string> tiesOf(const PipelineRates& rates, const Slowest& slowest) {
  return base::mapped(slowest.ties, [&](std::size_t stage) { return nameAt(rates, stage); });
}

// "store, 1.2 GB/s alone (load within 5 % of it)"
std::string slowestText(const PipelineRates& rates, const Slowest& slowest, const char* how) {
  std::string out =
      fmt::format("{}, {} GB/s {}", nameAt(rates, slowest.stage), digits(slowest.gb_per_s), how);
  const auto ties = tiesOf(rates, slowest);
  if (ties.empty()) return out;
  return out + fmt::format(" ({} within {:.0f} % of it)", fmt::join(ties, " and "), kTie * 100);
}

std::string bottleneckText(const PipelineRates& rates, const Conclusions& found) {
  std::string out = "bottleneck: " + slowestText(rates, *found.alone, "alone") + "\n";
  if (found.together && found.together->stage != found.alone->stage)
    out += fmt::format("together, another stage is the slowest: {}\n",
                       slowestText(rates, *found.together, "together"));
  if (found.busiest)
    out +=
        fmt::format("busiest in the pipeline: {}, {} of the time\n", nameAt(rates, *found.busiest),
                    percent(middle(rates.stages[*found.busiest].busy)));
  return out;
}

std::string efficiencyText(const Conclusions& found) {
  std::string out;
  const auto add = [&](const std::optional<Slowest>& slowest, const char* how) {
    if (!slowest || !slowest->efficiency) return;
    out += fmt::format("{}{:.0f} % of the slowest stage {}", out.empty() ? "efficiency: " : ", ",
                       *slowest->efficiency * 100, how);
  };
  add(found.alone, "alone");
  add(found.together, "together");
  if (out.empty()) return out;
  constexpr double kImpossible = 1.05;
  const auto above = [](const std::optional<Slowest>& slowest) {
    return slowest && slowest->efficiency.value_or(0) > kImpossible;
  };
  if (above(found.alone))
    out +=
        "\nabove 100 % alone: the rates change from part to part; stop other load, or measure "
        "longer with --duration";
  if (above(found.together))
    out +=
        "\nabove 100 % together: in the pipeline, the fast stages wait and leave more of a shared "
        "disk or core to the slow one";
  return out + "\n";
}

}  // namespace

std::vector<std::string> conclusionsOf(std::span<const Row> rows) {
  const PipelineRates rates = ratesOf(rows);
  const Conclusions found = conclude(rates);
  if (!found.alone) return {};
  std::uint64_t checked = 0;
  for (const Row& row : rows) checked += row.checks ? row.checks->transfers : 0;
  const std::string text = bottleneckText(rates, found) + efficiencyText(found) +
                           fmt::format("{} checked, every byte\n", counted(checked, "transfer"));
  std::vector<std::string> out;
  for (const std::string_view line : linesOf(text)) out.emplace_back(line);
  return out;
}

void show(std::span<const Row> rows, TableSink& sink) {
  const PipelineRates rates = ratesOf(rows);
  if (rates.stages.empty() || rates.stages.front().alone.empty()) return;
  const Row& first = rows.front();
  sink.line("pipeline: " + first.as<PipelineRow>()->pipeline);
  sink.line(fmt::format("{} each transfer, median of {}", base::showSize(first.block_size),
                        counted(rates.stages.front().alone.size(), "round")));
  sink.table("", kColumns, stageRows(rates));
  for (const Row& row : rows) {
    const std::string what = "^ " + stagesText(*row.as<PipelineRow>()) + ": ";
    if (!isGood(row.verdict)) sink.note(what + loudName(row.verdict) + ": " + row.why);
    if (!row.remark.empty()) sink.note(what + row.remark);
  }
  if (const std::string words = unprovenWords(rows); !words.empty()) sink.note(words);
}

}  // namespace viaduct::measure::pipeline
