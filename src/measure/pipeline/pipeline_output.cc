#include "measure/pipeline/pipeline_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/report_json.h"
#include "measure/result/text.h"
#include "measure/stats/statistics.h"

namespace viaduct::measure::pipeline {
namespace {

using base::Json;

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

std::string stagesTable(const PipelineRates& rates, std::size_t width) {
  std::vector<base::TextRow> rows;
  for (const StageRates& stage : rates.stages)
    rows.push_back(
        {{stage.name, stage.route, stage.way, digits(middle(stage.alone)), spreadOf(stage.alone),
          digits(middle(stage.together)), spreadOf(stage.together), digits(middle(rates.whole)),
          spreadOf(rates.whole), percent(middle(stage.busy))}});
  return base::tableText(kColumns, rows, width);
}

std::string nameAt(const PipelineRates& rates, std::size_t stage) {
  return rates.stages[stage].name;
}

std::vector<std::string> tiesOf(const PipelineRates& rates, const Slowest& slowest) {
  std::vector<std::string> names;
  for (const std::size_t stage : slowest.ties) names.push_back(nameAt(rates, stage));
  return names;
}

// "store, 1.2 GB/s alone (load is within 5 %)"
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

Json jsonOf(const std::vector<double>& values) {
  Json out{{"rounds", values}};
  if (const auto rate = middle(values)) out["gb_per_s"] = *rate;
  return out;
}

Json jsonOf(std::optional<double> value) { return value ? Json(*value) : Json(); }

Json jsonOf(const StageRates& stage) {
  return {{"name", stage.name},
          {"route", stage.route},
          {"path", stage.way},
          {"alone", jsonOf(stage.alone)},
          {"together", jsonOf(stage.together)},
          {"busy", {{"part", jsonOf(middle(stage.busy))}, {"rounds", stage.busy}}}};
}

Json jsonOf(const PipelineRates& rates, const std::optional<Slowest>& slowest) {
  if (!slowest) return {};
  Json out{{"stage", nameAt(rates, slowest->stage)},
           {"gb_per_s", slowest->gb_per_s},
           {"ties", tiesOf(rates, *slowest)}};
  if (slowest->efficiency) out["efficiency"] = *slowest->efficiency;
  return out;
}

constexpr FormatName kFormat{
    .front = "viaduct-pipeline/", .version = 1, .writer = "viaduct bench --pipeline"};
constexpr const char* kReading = "read pipeline file";

}  // namespace

std::string pipelineConclusions(const PipelineReport& report) {
  const Conclusions found = conclude(report.rates);
  if (!found.alone) return {};
  return bottleneckText(report.rates, found) + efficiencyText(found) +
         fmt::format("{} checked, every byte\n", counted(report.checked, "transfer"));
}

std::string pipelineText(const PipelineReport& report, std::size_t width) {
  const std::string conclusions = pipelineConclusions(report);
  if (conclusions.empty()) return {};
  return fmt::format("pipeline: {}\n{} each transfer, median of {}{}\n\n{}\n{}", report.pipeline,
                     base::showSize(report.bytes), counted(report.rounds, "round"),
                     report.end == "complete" ? "" : ", " + report.end,
                     stagesTable(report.rates, width), conclusions);
}

std::string pipelineJson(const PipelineReport& report) {
  Json members = Json::array(), stages = Json::array();
  for (const RunMember& one : report.members)
    members.push_back({{"rank", one.rank}, {"name", one.name}, {"hostname", one.host.hostname}});
  for (const StageRates& stage : report.rates.stages) stages.push_back(jsonOf(stage));
  Json whole = jsonOf(report.rates.whole);
  whole["path"] = report.rates.path;
  const Conclusions found = conclude(report.rates);
  return fileText(kFormat, {{"version", report.version},
                            {"started", report.started},
                            {"end", report.end},
                            {"command", report.command},
                            {"pipeline", report.pipeline},
                            {"bytes", report.bytes},
                            {"rounds", report.rounds},
                            {"checked_transfers", report.checked},
                            {"members", std::move(members)},
                            {"stages", std::move(stages)},
                            {"whole", std::move(whole)},
                            {"slowest_alone", jsonOf(report.rates, found.alone)},
                            {"slowest_together", jsonOf(report.rates, found.together)}});
}

// The JSON reader finds these functions by argument-dependent lookup, so they stay outside of the
// unnamed namespace.
struct NumberedRounds {
  std::vector<double> values = {};
};
struct WholeRounds {
  std::vector<double> values = {};
  std::string path = {};
};
struct NamedMember {
  std::uint32_t rank = 0;
  std::string name = {}, hostname = {};
};

void describe(base::JsonReader& from, NumberedRounds& rounds) {
  from.need("rounds", rounds.values);
}

void describe(base::JsonReader& from, WholeRounds& whole) {
  from.need("rounds", whole.values);
  from.need("path", whole.path);
}

void describe(base::JsonReader& from, NamedMember& member) {
  from.need("rank", member.rank);
  from.need("name", member.name);
  from.need("hostname", member.hostname);
}

void describe(base::JsonReader& from, StageRates& stage) {
  NumberedRounds alone, together, busy;
  from.need("name", stage.name);
  from.need("route", stage.route);
  from.need("path", stage.way);
  from.need("alone", alone);
  from.need("together", together);
  from.need("busy", busy);
  stage.alone = std::move(alone.values);
  stage.together = std::move(together.values);
  stage.busy = std::move(busy.values);
}

bool isPipelineJson(std::string_view text) { return hasFormat(text, kFormat); }

// The other fields of the file follow from these.
Result<PipelineReport> pipelineFromJson(std::string_view text, const std::string& name) {
  VIADUCT_TRY(const Json json, parseFile(text, name, kReading, kFormat));
  base::JsonReader from(json);
  PipelineReport out;
  std::vector<NamedMember> members;
  WholeRounds whole;
  from.need("version", out.version);
  from.need("started", out.started);
  from.need("end", out.end);
  from.need("command", out.command);
  from.need("pipeline", out.pipeline);
  from.need("bytes", out.bytes);
  from.need("rounds", out.rounds);
  from.need("checked_transfers", out.checked);
  from.need("members", members);
  from.need("stages", out.rates.stages);
  from.need("whole", whole);
  VIADUCT_CHECK(from.status(kReading, name));
  for (NamedMember& one : members)
    out.members.push_back(
        {.rank = one.rank, .name = one.name, .host = {.hostname = std::move(one.hostname)}});
  out.rates.whole = std::move(whole.values);
  out.rates.path = std::move(whole.path);
  return out;
}

}  // namespace viaduct::measure::pipeline
