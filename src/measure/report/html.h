// Writes HTML and SVG. All texts from outside must pass escaped(). Threads: pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::measure {

// Escapes text for content and for attributes in double quotes. Invalid UTF-8, and characters that
// HTML forbids, become U+FFFD.
std::string escaped(std::string_view text);

// Joins the names by commas, or only counts them if there are more than three: "4 hosts".
std::string listed(const std::set<std::string>& names, const char* many);

// Formats a number for SVG with at most two decimals.
std::string px(double value);

struct Cell {
  std::string html = {};    // escaped HTML
  bool number = false;      // aligned to the right
  bool head = false;        // the header of its row
  std::size_t columns = 1;  // how many columns the cell spans
};
inline Cell textCell(std::string_view text) { return {.html = escaped(text)}; }
inline Cell numberCell(std::string_view text) { return {.html = escaped(text), .number = true}; }
// The text of a figure that was not measured.
inline constexpr std::string_view kNothing = "–";
Cell figureCell(std::optional<double> figure);
inline Cell headCell(std::string_view text) { return {.html = escaped(text), .head = true}; }

struct HtmlTable {
  std::string caption = {};               // plain text
  std::vector<std::string> columns = {};  // plain texts
  std::vector<std::vector<Cell>> rows = {};
};
// Removes columns that are empty in all rows. Each row must have all columns.
HtmlTable withoutEmptyColumns(const HtmlTable& table);
// A rate as a bar.
struct RateBar {
  std::string label = {};
  double rate = 0;
  std::string words = {};  // behind the bar
  std::size_t colour = 0;  // number of the line in the charts
  std::string more = {};   // escaped HTML behind the words
};
// Draws the bars on one scale. Empty if no bar has a rate.
std::string barsHtml(const std::vector<RateBar>& bars);
// Puts the table into a box that scrolls if the table is wider than the page.
std::string tableHtml(const HtmlTable& table);

}  // namespace viaduct::measure
