#include "measure/report/suite_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sizes.h"
#include "measure/report/chart.h"
#include "measure/report/html.h"
#include "measure/report/scale.h"
#include "measure/report/suite_answers.h"
#include "measure/report/suite_text.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

std::string sizeText(const SuiteCell& cell) { return base::showSize(cell.size); }

Point pointOf(const std::string& test, const SuiteCell& cell, const Improvement& judged) {
  Point out{.x = static_cast<double>(cell.size), .y = judged.value * 100};
  out.tip = fmt::format("{}, {}: {} of {}", test, sizeText(cell), percentText(judged.value),
                        judgedByName(judgedBy(cell.size)));
  if (judged.interval) {
    out.low = judged.interval->low * 100;
    out.high = judged.interval->high * 100;
    out.tip += fmt::format(" ({}), {}", intervalText(judged), answerName(cell.answer));
  }
  return out;
}

// Shortens the whiskers of noisy runs. At full length they would squeeze all other points together.
void cutWhiskers(std::vector<ChartLine>& lines) {
  constexpr double kLeastRoom = 20;  // percent
  AxisRange range;
  for (const ChartLine& line : lines)
    for (const Point& point : line.points) range.add(point.y);
  const double room = std::max(kLeastRoom, range.high - range.low);
  for (ChartLine& line : lines)
    for (Point& point : line.points) {
      if (point.low) point.low = std::max(*point.low, range.low - room);
      if (point.high) point.high = std::min(*point.high, range.high + room);
    }
}

Chart chartOf(const Suite& suite, const std::vector<SuiteAnswers>& answers, const std::string& id) {
  Chart out{.id = id,
            .title = "Improvement over the baseline by transfer size",
            .note =
                "Above 0 is better: lower latency (p50) up to 4 KiB, more GB/s above 4 KiB. "
                "Whiskers are 95 % intervals; a whisker across 0 means that no difference was "
                "seen. Very long whiskers are cut.",
            .x_title = "transfer size",
            .y_title = "better by",
            .y_axis = YAxis::kChange};
  for (const SuiteAnswers& one : answers) {
    if (one.test == 0 || one.cells.empty()) continue;
    ChartLine line{.label = suite.tests[one.test].name};
    for (const SuiteCell& cell : one.cells)
      if (const auto& judged = cell.judged())
        line.points.push_back(pointOf(line.label, cell, *judged));
    out.lines.push_back(std::move(line));
  }
  cutWhiskers(out.lines);
  return out;
}

Cell answerCell(const SuiteCell& cell) {
  // Each form takes the answer, and some take the note behind it.
  constexpr base::Words<Answer, 6> kForms{
      {{"<span class=\"good\">✓ {}</span>", Answer::kHelps},
       {"<strong class=\"bad\">✗ {}</strong>", Answer::kHurts},
       {"{}", Answer::kNoneSeen},
       {"{}: {}", Answer::kIdle},
       {"<span class=\"unsure\">? {}</span>", Answer::kTooFew},
       {"<strong class=\"bad\">✗ {}</strong> {}", Answer::kUnusable}}};
  return {.html = fmt::format(fmt::runtime(base::wordOf(kForms, cell.answer)),
                              escaped(answerName(cell.answer)), escaped(cell.note))};
}

std::string captionOf(const SuiteTest& test) {
  std::string out = test.name;
  if (const std::string settings = settingsText(test); !settings.empty()) out += ": " + settings;
  if (!test.expected.empty()) out += fmt::format(" (expected: {})", test.expected);
  return out;
}

HtmlTable tableOf(const SuiteTest& test, const SuiteAnswers& answers) {
  HtmlTable out{.caption = captionOf(test),
                .columns = {"size", "GB/s", "p50 µs", "p95 µs", "p99 µs", "cores busy", "ends/s",
                            "rails", "better by", "95 % interval", "of", "it"}};
  for (const SuiteCell& cell : answers.cells) {
    const SuiteFigures& f = cell.figures;
    std::vector<Cell> row{headCell(sizeText(cell)),
                          figureCell(f.gb_per_s),
                          figureCell(f.p50_us),
                          figureCell(f.p95_us),
                          figureCell(f.p99_us),
                          figureCell(f.cores_busy),
                          figureCell(f.completions_per_s),
                          numberCell(f.rails)};
    const auto& judged = cell.judged();
    if (answers.test != 0 && judged) {
      row.push_back(numberCell(percentText(judged->value)));
      row.push_back(numberCell(judged->interval ? intervalText(judged) : std::string(kNothing)));
      row.push_back(textCell(judgedByName(judgedBy(cell.size))));
    } else {
      row.resize(row.size() + 3);
    }
    row.push_back(answers.test != 0 || !cell.note.empty() ? answerCell(cell) : Cell{});
    out.rows.push_back(std::move(row));
  }
  return withoutEmptyColumns(out);
}

}  // namespace

std::string suiteHtml(const SuiteSource& source, const std::string& id) {
  const Suite& suite = source.suite;
  const std::vector<SuiteAnswers> answers = answersOf(suite);
  std::string out = fmt::format("<p>{}: {} of {} rounds.</p>\n<ul>\n", escaped(source.name),
                                suite.rounds_done, suite.rounds);
  for (const SuiteAnswers& one : answers)
    if (one.test != 0)
      out += fmt::format("<li><b>{}</b>: {}</li>\n", escaped(suite.tests[one.test].name),
                         escaped(one.text));
  out += "</ul>\n";
  if (const std::string chance = chanceText(answers); !chance.empty())
    out += fmt::format("<p>{}</p>\n", escaped(chance));
  out += chartHtml(chartOf(suite, answers, id));
  for (const SuiteAnswers& one : answers)
    if (!one.cells.empty()) out += tableHtml(tableOf(suite.tests[one.test], one));
  return out;
}

std::vector<Source> sourcesOf(const SuiteSource& source) {
  const Suite& suite = source.suite;
  std::vector<Source> out;
  for (std::size_t i = 0; i < suite.tests.size(); ++i) {
    const SuiteTest& test = suite.tests[i];
    if (!test.absent.empty()) continue;
    Report report{.version = suite.version,
                  .started = suite.started,
                  .command = suite.command,
                  .environment = suite.environment,
                  .settings = suite.settings,
                  .agent = suite.agent};
    if (out.empty()) report.end = suite.end;  // shown once, with the first test
    report.settings.insert(report.settings.end(), test.settings.begin(), test.settings.end());
    for (const SuiteRun& run : suite.runs)
      if (run.test == i) report.rows.insert(report.rows.end(), run.rows.begin(), run.rows.end());
    out.push_back({fmt::format("{}: {}", source.name, test.name), std::move(report)});
  }
  return out;
}

}  // namespace viaduct::measure
