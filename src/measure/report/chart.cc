#include "measure/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/lists.h"
#include "base/sizes.h"
#include "measure/report/html.h"
#include "measure/report/marks.h"
#include "measure/report/scale.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

// The dimensions of a drawing.
struct ChartLayout {
  const char* css_class;
  double width, height;
  double left, right, top, bottom;  // margins around the plot
  std::size_t x_ticks, y_ticks;
  double radius, font;
};
constexpr ChartLayout kWide{"wide", 960, 440, 64, 16, 16, 52, 12, 10, 4.5, 13};
constexpr ChartLayout kNarrow{"narrow", 360, 340, 46, 8, 12, 46, 4, 8, 3.5, 11.5};
constexpr double kDodge = 2.5;  // distance between whiskers of neighbouring lines
constexpr double kLineHeight = 14;
constexpr double kLevelMargin = 30;  // space right of the plot for the letters that name ceilings

std::string letterOf(std::size_t level) { return {static_cast<char>('A' + level % 26)}; }

std::size_t drawn(const Chart& chart) { return std::min(chart.lines.size(), kMostLines); }

// The range of a chart's lines that one drawing shows.
struct Part {
  std::size_t first = 0, end = 0;
  std::size_t number = 0, all = 1;  // number of this drawing, from 0; how many there are
};

std::vector<Part> partsOf(const Chart& chart) {
  const std::size_t all = (drawn(chart) + kLinesOfDrawing - 1) / kLinesOfDrawing;
  std::vector<Part> out;
  out.reserve(all);
  for (std::size_t i = 0; i < all; ++i)
    out.push_back({i * kLinesOfDrawing, std::min((i + 1) * kLinesOfDrawing, drawn(chart)), i, all});
  return out;
}

bool isEmpty(const Chart& chart, const Part& part) {
  for (std::size_t i = part.first; i < part.end; ++i)
    if (!chart.lines[i].points.empty()) return false;
  return true;
}

// Moves names apart, whose `wanted` distances from the top ascend. The returned distances are at
// least a line apart, and none is below `bottom` if there is room for all.
std::vector<double> apart(std::vector<double> wanted, double bottom) {
  for (std::size_t i = 1; i < wanted.size(); ++i)
    wanted[i] = std::max(wanted[i], wanted[i - 1] + kLineHeight);
  double most = bottom;
  for (auto at = wanted.rbegin(); at != wanted.rend(); ++at, most -= kLineHeight)
    *at = std::min(*at, most);
  return wanted;
}

class Drawing {
 public:
  Drawing(const Chart& chart, const Part& part, const ChartLayout& layout)
      : chart_(chart), part_(part), layout_(layout), x_range_(xRange()), y_range_(yRange()) {
    if (!chart.levels.empty()) layout_.right = kLevelMargin;
    x_ticks_ = chart.x_axis == XAxis::kBlockSize ? sizeTicks(x_range_, xValues(), layout.x_ticks)
                                                 : countTicks(x_range_, layout.x_ticks);
    y_ticks_ = yTicks();
    for (const Tick& tick : y_ticks_) layout_.left = std::max(layout_.left, leftFor(tick.label));
  }

  // Returns the drawing and the elements that the keyboard reaches.
  std::string html() const {
    return fmt::format("<div class=\"plot {}\">\n{}{}</div>\n", layout_.css_class, svg(), stops());
  }

 private:
  std::string svg() const {
    std::string id = chart_.id + "-" + layout_.css_class, title = chart_.title;
    if (part_.number != 0) id += fmt::format("-{}", part_.number + 1);
    if (part_.all > 1) title += fmt::format(", {} of {}", part_.number + 1, part_.all);
    std::string out = fmt::format(
        "<svg class=\"chart {}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{}-t {}-d\">"
        "<title id=\"{}-t\">{}</title><desc id=\"{}-d\">{}</desc>\n",
        layout_.css_class, layout_.width, layout_.height, id, id, id, escaped(title), id,
        escaped(description()));
    out += grid() + axisTitles();
    for (std::size_t i = part_.first; i < part_.end; ++i) out += line(i);
    // Levels and invalid points are drawn over the lines, because they must be readable.
    return out + levels() + badPoints() + "</svg>\n";
  }

  // Makes one tab stop for each line: a group of radio buttons, one per point. Arrow keys walk
  // through them without a script, and screen readers know them. They lie invisibly over the marks.
  std::string stops() const {
    std::string out;
    for (std::size_t i = part_.first; i < part_.end; ++i) {
      const ChartLine& line = chart_.lines[i];
      if (line.points.empty()) continue;
      out += fmt::format("<div role=\"radiogroup\" class=\"stops\" aria-label=\"Points of {}\">\n",
                         escaped(line.label));
      for (const Point& p : line.points) out += stop(p, i, &p == line.points.data());
      out += "</div>\n";
    }
    return out;
  }

  std::string stop(const Point& p, std::size_t line, bool first) const {
    const double left = x().at(p.x) / layout_.width, top = y().at(p.y) / layout_.height;
    // The text of a point in the right half stands left of the point. The text of a point in the
    // upper half stands below the point.
    return fmt::format(
        "<label class=\"{}{}\" style=\"left:{}%;top:{}%\"><input type=\"radio\" "
        "name=\"{}-{}-{}\"{}><span>{}</span></label>\n",
        left > 0.5 ? "left" : "right", top < 0.5 ? " low" : "", px(100 * left), px(100 * top),
        chart_.id, layout_.css_class, line, first ? " checked" : "", escaped(p.tip));
  }

 private:
  // Returns the left margin that a label needs beside the axis title. kLetter is about a letter's
  // width in the fonts of pages.
  double leftFor(const std::string& label) const {
    constexpr double kTitle = 23, kLetter = 0.67;
    return kTitle + kLetter * layout_.font * static_cast<double>(label.size());
  }
  std::vector<Tick> yTicks() {
    if (chart_.y_axis == YAxis::kPercent) return percentTicks(y_range_);
    return chart_.y_axis == YAxis::kChange ? changeTicks(y_range_, layout_.y_ticks)
                                           : decadeTicks(y_range_, layout_.y_ticks);
  }
  double plotRight() const { return layout_.width - layout_.right; }
  double plotBottom() const { return layout_.height - layout_.bottom; }
  // Returns the x scale, with room at both ends, so that no mark touches the y axis.
  Scale x() const {
    constexpr double kRoom = 12;
    return {x_range_, true, layout_.left + kRoom, plotRight() - kRoom};
  }
  Scale y() const {
    return {y_range_, chart_.y_axis == YAxis::kLogarithmic, plotBottom(), layout_.top};
  }

  std::vector<double> xValues() const {
    std::set<double> out;
    for (std::size_t i = 0; i < drawn(chart_); ++i)
      for (const Point& p : chart_.lines[i].points) out.insert(p.x);
    return {out.begin(), out.end()};
  }

  AxisRange xRange() const {
    AxisRange out;
    for (const double x : xValues()) out.add(x);
    return out;
  }

  AxisRange yRange() const {
    AxisRange out;
    for (std::size_t i = 0; i < drawn(chart_); ++i)
      for (const Point& p : chart_.lines[i].points) {
        out.add(p.y);
        if (p.low && p.bad.empty()) out.add(*p.low);
        if (p.high && p.bad.empty()) out.add(*p.high);
      }
    for (const Level& level : chart_.levels)
      for (const auto& [at, value] : level.points) out.add(value);
    return out;
  }

  std::string grid() const {
    std::string lines, labels;
    for (const Tick& t : y_ticks_) {
      const std::string at = px(y().at(t.value));
      lines += fmt::format("M{} {}H{}", px(layout_.left), at, px(plotRight()));
      labels += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" dy=\".35em\">{}</text>",
                            px(layout_.left - 7), at, escaped(t.label));
    }
    for (const Tick& t : x_ticks_) {
      const std::string at = px(x().at(t.value));
      lines += fmt::format("M{} {}V{}", at, px(layout_.top), px(plotBottom()));
      labels += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", at,
                            px(plotBottom() + 18), escaped(t.label));
    }
    return fmt::format("<path class=\"grid\" d=\"{}\"/>\n<g class=\"tick\">{}</g>\n", lines,
                       labels);
  }

  std::string axisTitles() const {
    const double middle = (layout_.top + plotBottom()) / 2;
    return fmt::format(
        "<g class=\"axis\"><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>"
        "<text transform=\"translate(12 {}) rotate(-90)\" text-anchor=\"middle\">{}</text></g>\n",
        px((layout_.left + plotRight()) / 2), px(layout_.height - 8), escaped(chart_.x_title),
        px(middle), escaped(chart_.y_title));
  }

  std::string line(std::size_t index) const {
    const auto& points = chart_.lines[index].points;
    std::string track, whiskers, marks;
    bool broken = true;  // the next point starts a new part of the line
    const double shift = kDodge * (static_cast<double>(index) -
                                   static_cast<double>(part_.first + part_.end - 1) / 2);
    for (const Point& p : points) {
      const double at_x = x().at(p.x), at_y = y().at(p.y);
      // An invalid point interrupts the line.
      if (p.bad.empty()) track += fmt::format("{}{} {}", broken ? 'M' : 'L', px(at_x), px(at_y));
      broken = !p.bad.empty();
      if (p.low && p.high && p.bad.empty()) whiskers += whisker(at_x + shift, *p.low, *p.high);
      marks += fmt::format("<g><title>{}</title>{}</g>", escaped(p.tip),
                           mark(index, at_x, at_y, layout_.radius));
    }
    std::string out = fmt::format("<g class=\"series {}\">", colourClass(index));
    if (!whiskers.empty()) out += fmt::format("<path class=\"whisker\" d=\"{}\"/>", whiskers);
    if (!track.empty())
      out += fmt::format("<path class=\"line\" d=\"{}\"{}/>", track, dashes(index));
    return out + fmt::format("<g class=\"mark\">{}</g></g>\n", marks);
  }

  std::string whisker(double at, double low, double high) const {
    constexpr double kCap = 2.5;
    const std::string top = px(y().at(high)), bottom = px(y().at(low));
    const std::string from = px(at - kCap), to = px(at + kCap);
    return fmt::format("M{0} {1}V{2}M{3} {1}H{4}", px(at), top, bottom, from, to);
  }

  // Draws the level to the right edge of the plot.
  std::string levelTrack(const Level& level) const {
    std::string out;
    if (level.points.size() == 1)
      out = fmt::format("M{} {}", px(layout_.left), px(y().at(level.points[0].second)));
    else
      for (const auto& [at, value] : level.points)
        out += fmt::format("{}{} {}", out.empty() ? 'M' : 'L', px(x().at(at)), px(y().at(value)));
    return out + fmt::format("H{}", px(plotRight()));
  }

  // Draws ceilings as lines. A letter right of the plot names each, and the legend explains it.
  std::string levels() const {
    std::vector<std::size_t> order(chart_.levels.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto value = [&](std::size_t i) { return chart_.levels[i].points.back().second; };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(value(b), a) < std::pair(value(a), b);
    });
    const std::vector<double> ends =
        base::mapped(order, [&](std::size_t i) { return y().at(value(i)); });
    const std::vector<double> names = apart(ends, plotBottom());
    std::string out;
    for (std::size_t i = 0; i < order.size(); ++i)
      out += fmt::format(
          "<path class=\"level\" d=\"{}L{} {}\"/>"
          "<text class=\"levelname\" x=\"{}\" y=\"{}\" dy=\".35em\">{}</text>\n",
          levelTrack(chart_.levels[order[i]]), px(plotRight() + 10), px(names[i]),
          px(plotRight() + 13), px(names[i]), letterOf(order[i]));
    return out;
  }

  std::string badPoints() const {
    std::string out;
    for (std::size_t i = part_.first; i < part_.end; ++i)
      for (const Point& p : chart_.lines[i].points) {
        if (p.bad.empty()) continue;
        const double at_x = x().at(p.x), at_y = y().at(p.y), r = layout_.radius * 2.2;
        const bool right = at_x < (layout_.left + plotRight()) / 2;
        out += fmt::format(
            "<path class=\"bad\" d=\"M{0} {1}L{2} {3}M{2} {1}L{0} {3}\"/>"
            "<text class=\"halo badname\" x=\"{4}\" y=\"{5}\" text-anchor=\"{6}\">{7}</text>\n",
            px(at_x - r), px(at_y - r), px(at_x + r), px(at_y + r),
            px(right ? at_x + r + 3 : at_x - r - 3), px(at_y + 4), right ? "start" : "end",
            escaped(p.bad));
      }
    return out;
  }

  std::string description() const;

  const Chart& chart_;
  const Part part_;
  ChartLayout layout_;
  AxisRange x_range_, y_range_;
  std::vector<Tick> x_ticks_, y_ticks_;
};

std::string xText(const Chart& chart, double x) {
  return chart.x_axis == XAxis::kBlockSize ? base::showSize(static_cast<std::uint64_t>(x))
                                           : fmt::format("{:.0f} members", x);
}

// Describes a line in words, for readers who cannot see the chart.
std::string course(const Chart& chart, const ChartLine& line) {
  const auto [low, high] =
      std::minmax_element(line.points.begin(), line.points.end(),
                          [](const Point& a, const Point& b) { return a.y < b.y; });
  const auto figure = [&](double y) {
    return chart.y_axis == YAxis::kChange ? fmt::format("{:+.1f} %", y) : digits(y);
  };
  return fmt::format("{}: lowest {} at {}, highest {} at {}.", line.label, figure(low->y),
                     xText(chart, low->x), figure(high->y), xText(chart, high->x));
}

std::string Drawing::description() const {
  std::string out = fmt::format("{} over {}.", chart_.y_title, chart_.x_title);
  for (std::size_t i = part_.first; i < part_.end; ++i)
    if (!chart_.lines[i].points.empty()) out += " " + course(chart_, chart_.lines[i]);
  for (const Level& level : chart_.levels) out += fmt::format(" Ceiling: {}.", level.label);
  return out + " All figures are in the table below.";
}

std::string legend(const Chart& chart, const Part& part) {
  std::string out = "<ul class=\"legend\">\n";
  for (std::size_t i = part.first; i < part.end; ++i)
    if (!chart.lines[i].points.empty())
      out += fmt::format("<li>{} {}</li>\n", swatch(i), escaped(chart.lines[i].label));
  for (std::size_t i = 0; i < chart.levels.size(); ++i)
    out += fmt::format(
        "<li><svg class=\"swatch\" width=\"40\" height=\"14\" aria-hidden=\"true\"><path "
        "class=\"level\" d=\"M1 7H39\"/></svg> ceiling {}: {}</li>\n",
        letterOf(i), escaped(chart.levels[i].label));
  return out + "</ul>\n";
}

std::string partHtml(const Chart& chart, const Part& part) {
  if (isEmpty(chart, part)) return {};
  return "<figure>\n" + Drawing(chart, part, kWide).html() + Drawing(chart, part, kNarrow).html() +
         legend(chart, part) +
         fmt::format("<figcaption>{}</figcaption>\n</figure>\n", escaped(chart.note));
}

}  // namespace

bool isEmpty(const Chart& chart) {
  return std::all_of(chart.lines.begin(), chart.lines.end(),
                     [](const ChartLine& line) { return line.points.empty(); });
}

std::string chartHtml(const Chart& chart) {
  if (isEmpty(chart)) return {};
  std::string out;
  for (const Part& part : partsOf(chart)) out += partHtml(chart, part);
  if (chart.lines.size() > kMostLines)
    out += fmt::format("<p>The chart has {} of {} lines; the table has all.</p>\n", kMostLines,
                       chart.lines.size());
  return out;
}

}  // namespace viaduct::measure
