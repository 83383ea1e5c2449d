#include "measure/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Whether a character of so many bytes may have this code: the shortest way to write it, and no
// half of a pair, no control character.
bool isCharacter(std::uint32_t code, std::size_t size) {
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0xa0, 0x800, 0x10000};
  return code >= kLeast[size] && code <= 0x10ffff && (code < 0xd800 || code >= 0xe000);
}

// How many bytes the character at `at` has; 0 when it is none.
std::size_t characterSize(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + size > text.size()) return 0;
  std::uint32_t code = first & (0x7fU >> size);
  for (const char c : text.substr(at + 1, size - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0U) != 0x80U) return 0;
    code = (code << 6U) | (byte & 0x3fU);
  }
  return isCharacter(code, size) ? size : 0;
}

std::string_view entityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

bool isAllowed(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t';
}

std::string cellHtml(const Cell& cell) {
  if (cell.head) return fmt::format("<th scope=\"row\">{}</th>", cell.html);
  return fmt::format("<td{}>{}</td>", cell.number ? " class=\"n\"" : "", cell.html);
}

bool hasNumbers(const Table& table, std::size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const std::vector<Cell>& row) {
    return column < row.size() && row[column].number;
  });
}

bool isEmpty(const Table& table, std::size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const std::vector<Cell>& row) {
    return column >= row.size() || row[column].html.empty() || row[column].html == kNothing;
  });
}

}  // namespace

Cell figureCell(std::optional<double> figure) {
  return numberCell(figure ? digits(figure) : std::string(kNothing));
}

Table withoutEmptyColumns(const Table& table) {
  Table out{.caption = table.caption};
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
    const std::size_t size = characterSize(text, at);
    const std::string_view entity = entityOf(text[at]);
    if (size == 0 || (size == 1 && !isAllowed(text[at])))
      out += kReplacement;
    else if (!entity.empty())
      out += entity;
    else
      out += text.substr(at, size);
    at += size == 0 ? 1 : size;
  }
  return out;
}

std::string px(double value) {
  std::string out = fmt::format("{:.2f}", value);
  while (out.ends_with('0')) out.pop_back();
  if (out.ends_with('.')) out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string tableHtml(const Table& table) {
  // A region that scrolls has to be reached with the keyboard.
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
