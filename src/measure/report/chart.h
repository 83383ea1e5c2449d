// Makes a chart as SVG without scripts. The keyboard reaches its points. Each chart is drawn twice,
// for wide and for narrow pages; the style sheet shows one drawing. Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace viaduct::measure {

struct Point {
  double x = 0, y = 0;
  std::optional<double> low = {}, high = {};  // ends of the whisker
  std::string tip = {};                       // the tooltip's text
  std::string bad = {};  // the verdict of an invalid row, which is shown at the point
};

struct ChartLine {
  std::string label = {};
  std::vector<Point> points = {};  // ascending by x
};

struct Level {  // a ceiling: constant, or a value for each block size
  std::string label = {};
  std::vector<std::pair<double, double>> points = {};  // ascending by x; a single point: constant
};

enum class XAxis { kBlockSize, kMembers };
enum class YAxis { kLogarithmic, kPercent, kChange };  // kChange: up or down, in percent

struct Chart {
  std::string id = {};  // letters only
  std::string title = {};
  std::string note = {};  // an explanation below the chart
  std::string x_title = {}, y_title = {};
  XAxis x_axis = XAxis::kBlockSize;
  YAxis y_axis = YAxis::kLogarithmic;
  std::vector<ChartLine> lines = {};
  std::vector<Level> levels = {};
};

// A chart draws at most kMostLines lines; the tables show the remaining lines. More than
// kLinesOfDrawing lines need several drawings.
inline constexpr std::size_t kMostLines = 24;

bool isEmpty(const Chart& chart);
// Returns a figure with both drawings, a legend, and the chart's content as text. Many lines make
// several figures with the same axes.
std::string chartHtml(const Chart& chart);

}  // namespace viaduct::measure
