#include "measure/report/pipeline_section.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/sizes.h"
#include "measure/report/html.h"
#include "measure/result/pipeline_rates.h"
#include "measure/result/pipeline_table.h"
#include "measure/result/statistics.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

Cell busyCell(const std::vector<double>& busy) {
  const auto part = middle(busy);
  return part ? numberCell(fmt::format("{:.0f} %", *part * 100)) : figureCell(std::nullopt);
}

}  // namespace

std::string pipelineHtml(const Source& source) {
  std::vector<Row> rows;
  for (const Row& row : source.report.rows)
    if (row.as<PipelineRow>() != nullptr) rows.push_back(row);
  const pipeline::PipelineRates rates = pipeline::ratesOf(rows);
  if (rates.stages.empty()) return {};
  std::string out = fmt::format(
      "<p>{}: {}, {} each transfer, median of {}.</p>\n<ul>\n", escaped(source.name),
      escaped(rows.front().as<PipelineRow>()->pipeline), base::showSize(rows.front().block_size),
      counted(rates.stages.front().alone.size(), "round"));
  for (const std::string& line : pipeline::conclusionsOf(rows))
    out += fmt::format("<li>{}</li>\n", escaped(line));
  HtmlTable table{
      .caption = "Stages: GB/s of each alone, of all together, and of the pipeline",
      .columns = {"stage", "from, to", "path", "alone", "together", "pipeline", "busy"}};
  for (const pipeline::StageRates& stage : rates.stages)
    table.rows.push_back({headCell(stage.name), textCell(stage.route), textCell(stage.way),
                          figureCell(middle(stage.alone)), figureCell(middle(stage.together)),
                          figureCell(middle(rates.whole)), busyCell(stage.busy)});
  return out + "</ul>\n" + tableHtml(table);
}

}  // namespace viaduct::measure
