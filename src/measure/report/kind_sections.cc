#include "measure/report/kind_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "measure/report/html.h"
#include "measure/result/pipeline_rates.h"
#include "measure/result/statistics.h"
#include "measure/result/table.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

// Joins the lines of notes. On a terminal, each note begins with "^".
std::string notesHtml(std::string_view after) {
  std::string out;
  for (const std::string_view line : measure::linesOf(after)) {
    std::string_view text = base::trimmed(line);
    const bool begins = text.starts_with("^ ");
    if (begins) text.remove_prefix(2);
    out += (out.empty() ? "" : begins ? "<br>" : " ") + escaped(text);
  }
  return out;
}

// Writes the tables as HTML. The lines in front of a table without a title become its caption.
class HtmlSink final : public TableSink {
 public:
  void line(const std::string& text) override { lines_.push_back(text); }

  void table(const std::string& title, base::TextColumns columns,
             const std::vector<base::TextRow>& rows) override {
    HtmlTable out{.caption = title};
    if (title.empty()) {
      out.caption = fmt::format("{}", fmt::join(lines_, "; "));
      lines_.clear();
    }
    putLines();
    for (const base::TextColumn& column : columns)
      out.columns.emplace_back(base::trimmed(column.title));
    for (const base::TextRow& row : rows) addRow(columns, row, out);
    html_ += tableHtml(out);
  }

  void note(const std::string& text) override { lines_.push_back(text); }

  std::string html() {
    putLines();
    return html_;
  }

 private:
  static void addRow(base::TextColumns columns, const base::TextRow& row, HtmlTable& into) {
    std::vector<Cell> cells;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::string_view text = base::trimmed(row.cells[i]);
      cells.push_back(i == 0            ? headCell(text)
                      : columns[i].left ? textCell(text)
                      : text == "-"     ? numberCell(kNothing)
                                        : numberCell(text));
    }
    if (!cells.empty()) into.rows.push_back(std::move(cells));
    if (row.after.empty()) return;
    into.rows.push_back({Cell{.html = notesHtml(row.after), .columns = columns.size()}});
  }

  void putLines() {
    if (lines_.empty()) return;
    std::string all;
    for (const std::string& text : lines_) all += (all.empty() ? "" : "<br>\n") + notesHtml(text);
    html_ += fmt::format("<p>{}</p>\n", all);
    lines_.clear();
  }

  std::vector<std::string> lines_;
  std::string html_;
};

// Draws the rates of the stages and of the whole pipeline.
std::string stageBars(std::span<const Row> rows) {
  const pipeline::PipelineRates rates = pipeline::ratesOf(rows);
  std::vector<RateBar> bars;
  const auto add = [&](const std::string& label, const std::vector<double>& values,
                       std::size_t colour) {
    if (const auto rate = middle(values))
      bars.push_back({label, *rate, digits(rate) + " GB/s", colour});
  };
  for (const pipeline::StageRates& stage : rates.stages) {
    add(stage.name + " alone", stage.alone, 0);
    add(stage.name + ", all stages together", stage.together, 1);
  }
  add("the pipeline", rates.whole, 2);
  return barsHtml(bars);
}

struct Kind {
  const char* title;
  bool (*has)(const Row& row);
};
template <class Of>
bool is(const Row& row) {
  return row.as<Of>() != nullptr;
}
bool isTrace(const Row& row) { return is<KvWorkload>(row) && row.as<KvWorkload>()->replay; }
bool isBurst(const Row& row) { return is<KvWorkload>(row) && !row.as<KvWorkload>()->replay; }
constexpr std::array kKinds{
    Kind{"Pipeline", is<PipelineRow>}, Kind{"Swap", is<SwapRow>}, Kind{"GPU matrix", is<MatrixRow>},
    Kind{"KV cache", isBurst},         Kind{"Trace", isTrace},    Kind{"Pattern", is<Operation>}};

std::string htmlOf(const Kind& kind, const Source& source) {
  std::vector<Row> rows;
  std::ranges::copy_if(source.report.rows, std::back_inserter(rows), kind.has);
  if (rows.empty()) return {};
  HtmlSink sink;
  showTables(rows, Kinds::kAll, sink);
  return stageBars(rows) + sink.html();
}

}  // namespace

std::vector<KindSection> kindSections(const std::vector<Source>& sources) {
  std::vector<KindSection> out;
  for (const Source& source : sources)
    for (const Kind& kind : kKinds)
      if (std::string html = htmlOf(kind, source); !html.empty())
        out.push_back(
            {sources.size() == 1 ? kind.title : fmt::format("{}: {}", kind.title, source.name),
             std::move(html)});
  return out;
}

}  // namespace viaduct::measure
