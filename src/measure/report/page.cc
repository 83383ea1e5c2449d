#include "measure/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "measure/report/figures.h"
#include "measure/report/html.h"
#include "measure/report/kind_sections.h"
#include "measure/report/outcome.h"
#include "measure/report/scaling.h"
#include "measure/report/style.h"
#include "measure/report/tables.h"

namespace viaduct::measure {
namespace {

struct Section {
  std::string id;
  std::string title;
  std::string html;  // empty: the page has no such section
};

// False for rows that have no chart over sizes, because each chart would have only one size. Tables
// show all of these rows.
bool hasSizes(const Row& row) {
  const auto* const kv = row.as<KvWorkload>();
  return row.as<PipelineRow>() == nullptr && row.as<MatrixRow>() == nullptr &&
         (kv == nullptr || !kv->replay);
}

Section figureSection(const char* title, const Figure& figure) {
  if (isEmpty(figure.chart)) return {};
  return {figure.chart.id, title, chartHtml(figure.chart) + tableHtml(figure.table)};
}

std::vector<Section> usualSections(const std::vector<Source>& sources,
                                   const std::vector<Series>& series) {
  std::vector<Series> sized = series;
  std::erase_if(sized, [](const Series& one) { return !hasSizes(one.rows.front()); });
  return {{"conclusions", "Conclusions", conclusionsHtml(sources)},
          figureSection("Bandwidth", bandwidthFigure(sized)),
          figureSection("Latency", latencyFigure(sized)),
          figureSection("CPU cost", cpuFigure(sized)),
          figureSection("Scaling", scalingFigure(series)),
          {"rows", "All rows", rowsHtml(sources)},
          {"environment", "Environment", environmentHtml(sources)},
          {"settings", "Settings", settingsHtml(sources)}};
}

// Returns "a" for 0 and "ba" for 26.
std::string lettersOf(std::size_t number) {
  std::string out(1, static_cast<char>('a' + number % 26));
  return number < 26 ? out : lettersOf(number / 26) + out;
}

std::vector<Section> sectionsOf(const std::vector<Source>& sources,
                                const std::vector<Series>& series,
                                const std::vector<SuiteSource>& suites) {
  std::vector<Section> out;
  for (const SuiteSource& suite : suites) {
    const std::string id = "suite" + lettersOf(out.size());
    out.push_back({id, "Suite " + escaped(suite.name), suiteHtml(suite, id + "chart")});
  }
  for (KindSection& kind : kindSections(sources))
    out.push_back({"kind" + lettersOf(out.size()), escaped(kind.title), std::move(kind.html)});
  for (Section& section : usualSections(sources, series)) out.push_back(std::move(section));
  return out;
}

}  // namespace

std::string reportPage(const std::vector<Source>& sources, const std::string& version,
                       const std::vector<SuiteSource>& suites, const std::string& title) {
  std::vector<Series> series = seriesOf(sources);
  // Series with charts come first, so that each has the same colour everywhere.
  std::stable_partition(series.begin(), series.end(),
                        [](const Series& one) { return hasSizes(one.rows.front()); });
  const std::vector<Section> sections = sectionsOf(sources, series, suites);
  const std::string heading = escaped(title.empty() ? titleOf(sources) : title);
  std::string out = pageHead(heading);
  out += fmt::format("<header>\n<h1>{}</h1>\n", heading) + originHtml(sources) +
         outcomeHtml(sources, series, suites) + runsHtml(sources);
  out += "<nav aria-label=\"Sections\"><ul>\n";
  for (const Section& s : sections)
    if (!s.html.empty()) out += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", s.id, s.title);
  out += "</ul></nav>\n</header>\n<main>\n";
  for (const Section& s : sections)
    if (!s.html.empty())
      out +=
          fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n",
                      s.id, s.title, s.html);
  return out + fmt::format(
                   "</main>\n<footer>Made by viaduct {}. A figure that was not measured is blank "
                   "or –, never 0.</footer>\n</body>\n</html>\n",
                   escaped(version));
}

}  // namespace viaduct::measure
