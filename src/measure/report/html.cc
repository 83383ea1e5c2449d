#include "measure/report/html.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/utf8.h"
#include "measure/report/marks.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr std::array<std::pair<char, std::string_view>, 5> kEntities{
    {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};

std::string_view entityOf(char c) {
  for (const auto& [character, entity] : kEntities)
    if (character == c) return entity;
  return {};
}

bool isAllowed(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t';
}

std::string cellHtml(const Cell& cell) {
  if (cell.head) return fmt::format("<th scope=\"row\">{}</th>", cell.html);
  if (cell.columns > 1)
    return fmt::format("<td class=\"note\" colspan=\"{}\"><div>{}</div></td>", cell.columns,
                       cell.html);
  return fmt::format("<td{}>{}</td>", cell.number ? " class=\"n\"" : "", cell.html);
}

bool hasNumbers(const HtmlTable& table, std::size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const std::vector<Cell>& row) {
    return column < row.size() && row[column].number;
  });
}

bool isEmpty(const HtmlTable& table, std::size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const std::vector<Cell>& row) {
    return column >= row.size() || row[column].html.empty() || row[column].html == kNothing;
  });
}

}  // namespace

Cell figureCell(std::optional<double> figure) {
  return numberCell(figure ? digits(figure) : std::string(kNothing));
}

HtmlTable withoutEmptyColumns(const HtmlTable& table) {
  HtmlTable out{.caption = table.caption};
  out.rows.resize(table.rows.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (isEmpty(table, i)) continue;
    out.columns.push_back(table.columns[i]);
    for (std::size_t r = 0; r < table.rows.size(); ++r) out.rows[r].push_back(table.rows[r][i]);
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = base::characterSize(text, at);
    const std::string_view entity = entityOf(text[at]);
    if (size == 0 || (size == 1 && !isAllowed(text[at])))
      out += base::kReplacement;
    else if (!entity.empty())
      out += entity;
    else
      out += text.substr(at, size);
    at += size == 0 ? 1 : size;
  }
  return out;
}

std::string listed(const std::set<std::string>& names, const char* many) {
  constexpr std::size_t kMost = 3;
  return names.size() > kMost ? fmt::format("{} {}", names.size(), many)
                              : fmt::format("{}", fmt::join(names, ", "));
}

std::string px(double value) {
  std::string out = fmt::format("{:.2f}", value);
  while (out.ends_with('0')) out.pop_back();
  if (out.ends_with('.')) out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string barsHtml(const std::vector<RateBar>& bars) {
  double most = 0;
  for (const RateBar& bar : bars) most = std::max(most, bar.rate);
  if (most <= 0) return {};
  std::string out = "<ul class=\"rates\">\n";
  for (const RateBar& bar : bars)
    out += fmt::format(
        "<li><span>{}</span><span class=\"track\"><span class=\"{}\" style=\"width:{}%\"></span>"
        "</span><span>{}{}</span></li>\n",
        escaped(bar.label), colourClass(bar.colour), px(100 * bar.rate / most), escaped(bar.words),
        bar.more);
  return out + "</ul>\n";
}

std::string tableHtml(const HtmlTable& table) {
  // tabindex lets keyboard users focus the region, which they need to scroll it.
  std::string out = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n<table>\n"
      "<caption><span>{0}</span></caption>\n<thead><tr>",
      escaped(table.caption));
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", hasNumbers(table, i) ? " class=\"n\"" : "",
                       escaped(table.columns[i]));
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const Cell& cell : row) out += cellHtml(cell);
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</div>\n";
}

}  // namespace viaduct::measure
