// Writing HTML and SVG: every text that comes from outside goes through escaped(). Threads: pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::measure {

// For content and for attributes in double quotes. Bytes that are no UTF-8 and characters that HTML
// does not allow become U+FFFD.
std::string escaped(std::string_view text);

// A number for SVG: two decimals at most.
std::string px(double value);

struct Cell {
  std::string html = {};  // ready-made
  bool number = false;    // set to the right
  bool head = false;      // names its row
};
inline Cell textCell(std::string_view text) { return {.html = escaped(text)}; }
inline Cell numberCell(std::string_view text) { return {.html = escaped(text), .number = true}; }
// What stands for a figure that was not measured.
inline constexpr std::string_view kNothing = "–";
Cell figureCell(std::optional<double> figure);
inline Cell headCell(std::string_view text) { return {.html = escaped(text), .head = true}; }

struct HtmlTable {
  std::string caption = {};               // text
  std::vector<std::string> columns = {};  // texts
  std::vector<std::vector<Cell>> rows = {};
};
// Without columns in which no row has anything. Every row has all columns.
HtmlTable withoutEmptyColumns(const HtmlTable& table);
// In a box of its own that scrolls when the table is wider than the page.
std::string tableHtml(const HtmlTable& table);

}  // namespace viaduct::measure
