#include "measure/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/report/html.h"
#include "measure/report/marks.h"
#include "measure/report/scale.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

// What a drawing has room for.
struct Layout {
  const char* css_class;
  double width, height;
  double left, right, top, bottom;  // margins around the plot
  std::size_t x_ticks, y_ticks;
  double radius, font;
  bool level_names;  // of ceilings, in full; else a letter that the legend explains
};
constexpr Layout kWide{"wide", 960, 440, 64, 16, 16, 52, 12, 10, 4.5, 13, true};
constexpr Layout kNarrow{"narrow", 360, 340, 46, 8, 12, 46, 4, 8, 3.5, 11.5, false};
constexpr double kDodge = 2.5;  // whiskers of several lines beside each other
constexpr double kLineHeight = 14;

std::string letterOf(std::size_t level) { return {static_cast<char>('A' + level % 26)}; }

std::size_t drawn(const Chart& chart) { return std::min(chart.lines.size(), kMostLines); }

class Drawing {
 public:
  Drawing(const Chart& chart, const Layout& layout)
      : chart_(chart), layout_(layout), x_range_(xRange()), y_range_(yRange()) {
    x_ticks_ = chart.x_axis == XAxis::kBlockSize ? sizeTicks(x_range_, layout.x_ticks)
                                                 : countTicks(x_range_, layout.x_ticks);
    y_ticks_ = yTicks();
    for (const Tick& tick : y_ticks_) layout_.left = std::max(layout_.left, leftFor(tick.label));
  }

  // The drawing, and what the keyboard reaches of it.
  std::string html() const {
    return fmt::format("<div class=\"plot {}\">\n{}{}</div>\n", layout_.css_class, svg(), stops());
  }

 private:
  std::string svg() const {
    const std::string id = chart_.id + "-" + layout_.css_class;
    std::string out = fmt::format(
        "<svg class=\"chart {}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{}-t {}-d\">"
        "<title id=\"{}-t\">{}</title><desc id=\"{}-d\">{}</desc>\n",
        layout_.css_class, layout_.width, layout_.height, id, id, id, escaped(chart_.title), id,
        escaped(description()));
    out += grid() + axisTitles();
    for (std::size_t i = 0; i < drawn(chart_); ++i) out += line(i);
    // Above the lines: they must be readable.
    return out + levels() + badPoints() + "</svg>\n";
  }

  // One tab stop for each line, whose points arrow keys walk through: radio buttons do that without
  // a script, and readers of screens know them. They lie over the marks and cannot be seen.
  std::string stops() const {
    std::string out;
    for (std::size_t i = 0; i < drawn(chart_); ++i) {
      const Line& line = chart_.lines[i];
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
    // Words of a point on the right stand to its left, and of one high up below it.
    return fmt::format(
        "<label class=\"{}{}\" style=\"left:{}%;top:{}%\"><input type=\"radio\" "
        "name=\"{}-{}-{}\"{}><span>{}</span></label>\n",
        left > 0.5 ? "left" : "right", top < 0.5 ? " low" : "", px(100 * left), px(100 * top),
        chart_.id, layout_.css_class, line, first ? " checked" : "", escaped(p.tip));
  }

 private:
  // Beside the axis' title; a letter is about this wide in the fonts that pages come in.
  double leftFor(const std::string& label) const {
    constexpr double kTitle = 23, kLetter = 0.67;
    return kTitle + kLetter * layout_.font * static_cast<double>(label.size());
  }
  std::vector<Tick> yTicks() {
    switch (chart_.y_axis) {
      case YAxis::kPercent:
        return percentTicks(y_range_);
      case YAxis::kChange:
        return changeTicks(y_range_, layout_.y_ticks);
      case YAxis::kLogarithmic:
        break;
    }
    return decadeTicks(y_range_, layout_.y_ticks);
  }
  double plotRight() const { return layout_.width - layout_.right; }
  double plotBottom() const { return layout_.height - layout_.bottom; }
  // A little room on both sides, so that marks do not stand on the axis.
  Scale x() const {
    constexpr double kRoom = 12;
    return {x_range_, true, layout_.left + kRoom, plotRight() - kRoom};
  }
  Scale y() const {
    return {y_range_, chart_.y_axis == YAxis::kLogarithmic, plotBottom(), layout_.top};
  }

  Range xRange() const {
    Range out;
    for (std::size_t i = 0; i < drawn(chart_); ++i)
      for (const Point& p : chart_.lines[i].points) out.add(p.x);
    return out;
  }

  Range yRange() const {
    Range out;
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
    bool broken = true;  // the line starts anew
    const double shift =
        kDodge * (static_cast<double>(index) - static_cast<double>(drawn(chart_) - 1) / 2);
    for (const Point& p : points) {
      const double at_x = x().at(p.x), at_y = y().at(p.y);
      // What cannot be used is not part of a line.
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

  std::string levelTrack(const Level& level) const {
    if (level.points.size() == 1)
      return fmt::format("M{} {}H{}", px(layout_.left), px(y().at(level.points[0].second)),
                         px(plotRight()));
    std::string out;
    for (const auto& [at, value] : level.points)
      out += fmt::format("{}{} {}", out.empty() ? 'M' : 'L', px(x().at(at)), px(y().at(value)));
    return out;
  }

  // Lines with their names at their ends, which are moved apart when they would cover each other.
  std::string levels() const {
    std::vector<Level> sorted = chart_.levels;
    // More than a few names would cover the lines of what was measured.
    if (!layout_.level_names || sorted.size() > 2)
      for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i].label = letterOf(i);
    std::sort(sorted.begin(), sorted.end(), [](const Level& a, const Level& b) {
      return a.points.back().second > b.points.back().second;
    });
    std::string out;
    double last = -kLineHeight;
    for (const Level& level : sorted) {
      const double at = y().at(level.points.back().second);
      // A line that falls comes from above: its name stands below it.
      const bool falls = level.points.front().second > level.points.back().second;
      const bool below = falls || at - 4 < layout_.top + 8;
      const double label = std::max(below ? at + 14 : at - 4, last + kLineHeight);
      last = label;
      out += fmt::format(
          "<path class=\"level\" d=\"{}\"/>"
          "<text class=\"halo\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
          levelTrack(level), px(plotRight() - 4), px(label), escaped(level.label));
    }
    return out;
  }

  std::string badPoints() const {
    std::string out;
    for (std::size_t i = 0; i < drawn(chart_); ++i)
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
  Layout layout_;
  Range x_range_, y_range_;
  std::vector<Tick> x_ticks_, y_ticks_;
};

std::string xText(const Chart& chart, double x) {
  return chart.x_axis == XAxis::kBlockSize ? sizeLabel(x) : fmt::format("{:.0f} members", x);
}

// The course of a line in words, for those who do not see it.
std::string course(const Chart& chart, const Line& line) {
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
  for (std::size_t i = 0; i < drawn(chart_); ++i)
    if (!chart_.lines[i].points.empty()) out += " " + course(chart_, chart_.lines[i]);
  for (const Level& level : chart_.levels) out += fmt::format(" Ceiling: {}.", level.label);
  return out + " All figures are in the table below.";
}

std::string legend(const Chart& chart) {
  std::string out = "<ul class=\"legend\">\n";
  for (std::size_t i = 0; i < drawn(chart); ++i)
    if (!chart.lines[i].points.empty())
      out += fmt::format("<li>{} {}</li>\n", swatch(i), escaped(chart.lines[i].label));
  for (std::size_t i = 0; i < chart.levels.size(); ++i)
    out += fmt::format(
        "<li><svg class=\"swatch\" width=\"40\" height=\"14\" aria-hidden=\"true\"><path "
        "class=\"level\" d=\"M1 7H39\"/></svg> ceiling {}: {}</li>\n",
        letterOf(i), escaped(chart.levels[i].label));
  out += "</ul>\n";
  if (chart.lines.size() > kMostLines)
    out += fmt::format("<p>{} of {} lines are drawn; the table has all.</p>\n", kMostLines,
                       chart.lines.size());
  return out;
}

}  // namespace

bool isEmpty(const Chart& chart) {
  return std::all_of(chart.lines.begin(), chart.lines.end(),
                     [](const Line& line) { return line.points.empty(); });
}

std::string chartHtml(const Chart& chart) {
  if (isEmpty(chart)) return {};
  return "<figure>\n" + Drawing(chart, kWide).html() + Drawing(chart, kNarrow).html() +
         legend(chart) +
         fmt::format("<figcaption>{}</figcaption>\n</figure>\n", escaped(chart.note));
}

}  // namespace viaduct::measure
