#include "measure/report/pipeline_section.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sizes.h"
#include "measure/report/html.h"
#include "measure/result/text.h"
#include "measure/stats/statistics.h"

namespace viaduct::measure {
namespace {

Cell busyCell(const std::vector<double>& busy) {
  const auto part = middle(busy);
  return part ? numberCell(fmt::format("{:.0f} %", *part * 100)) : figureCell(std::nullopt);
}

}  // namespace

std::string pipelineHtml(const PipelineSource& source) {
  const pipeline::PipelineReport& report = source.report;
  std::string out = fmt::format("<p>{}: {}, {} each transfer, median of {}.</p>\n<ul>\n",
                                escaped(source.name), escaped(report.pipeline),
                                base::showSize(report.bytes), counted(report.rounds, "round"));
  const std::string conclusions = pipelineConclusions(report);
  for (const std::string_view line : linesOf(conclusions))
    out += fmt::format("<li>{}</li>\n", escaped(line));
  HtmlTable table{
      .caption = "Stages: GB/s of each alone, of all together, and of the pipeline",
      .columns = {"stage", "from, to", "path", "alone", "together", "pipeline", "busy"}};
  for (const pipeline::StageRates& stage : report.rates.stages)
    table.rows.push_back({headCell(stage.name), textCell(stage.route), textCell(stage.way),
                          figureCell(middle(stage.alone)), figureCell(middle(stage.together)),
                          figureCell(middle(report.rates.whole)), busyCell(stage.busy)});
  return out + "</ul>\n" + tableHtml(table);
}

Source sourceOf(const PipelineSource& source) {
  const pipeline::PipelineReport& from = source.report;
  Report report{.version = from.version,
                .started = from.started,
                .end = from.end,
                .command = from.command,
                .environment = {.members = from.members}};
  return {source.name, std::move(report)};
}

}  // namespace viaduct::measure
