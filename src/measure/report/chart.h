// One chart as SVG, complete without any script, its points reachable with the keyboard. It is
// drawn twice, for wide and for narrow pages; the style sheet shows one of them. Threads: pure
// functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace viaduct::measure {

struct Point {
  double x = 0, y = 0;
  std::optional<double> low = {}, high = {};  // a whisker from there to there
  std::string tip = {};                       // the point in words
  std::string bad = {};                       // a verdict that is shown at the point
};

struct ChartLine {
  std::string label = {};
  std::vector<Point> points = {};  // by x
};

struct Level {  // a ceiling: a line across the chart, or one that follows the block size
  std::string label = {};
  std::vector<std::pair<double, double>> points = {};  // by x; one stands for all
};

enum class XAxis { kBlockSize, kMembers };
enum class YAxis { kLogarithmic, kPercent, kChange };  // the last: up or down, in percent

struct Chart {
  std::string id = {};  // of letters
  std::string title = {};
  std::string note = {};  // how to read it: below the chart
  std::string x_title = {}, y_title = {};
  XAxis x_axis = XAxis::kBlockSize;
  YAxis y_axis = YAxis::kLogarithmic;
  std::vector<ChartLine> lines = {};
  std::vector<Level> levels = {};
};

// Lines beyond this are only in the tables. Above kLinesOfDrawing there are several drawings.
inline constexpr std::size_t kMostLines = 24;

bool isEmpty(const Chart& chart);
// A figure with both drawings, a legend, and what the chart shows in words; of many lines several
// figures with the same axes.
std::string chartHtml(const Chart& chart);

}  // namespace viaduct::measure
