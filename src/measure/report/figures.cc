#include "measure/report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>

#include "base/sizes.h"
#include "measure/report/scale.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kMostLevels = 6;
constexpr double kSameCeiling = 0.1;  // runs measure a ceiling slightly differently

std::string atSize(const Series& series, const Row& row) {
  return fmt::format("{}, {}", series.label, base::showSize(chosenSize(row)));
}

Point pointOf(const Row& row, double y) {
  return {.x = static_cast<double>(chosenSize(row)),
          .y = y,
          .bad = isGood(row.verdict) ? std::string{} : loudName(row.verdict)};
}

using ToPoint = std::function<std::optional<Point>(const Series&, const Row&)>;

std::vector<ChartLine> linesOf(const std::vector<Series>& series, const ToPoint& to_point) {
  std::vector<ChartLine> out;
  for (const Series& s : series) {
    ChartLine line{.label = s.label};
    for (const Row& row : s.rows)
      if (auto point = to_point(s, row); point && point->y > 0)
        line.points.push_back(*std::move(point));
    out.push_back(std::move(line));
  }
  return out;
}

using ToCell = std::function<Cell(const Row&)>;

// Makes a table with a row for each block size and a column for each series.
HtmlTable pivot(const std::string& caption, const std::vector<Series>& series,
                const ToCell& to_cell) {
  HtmlTable out{.caption = caption, .columns = {"block size"}};
  for (const Series& s : series) out.columns.push_back(s.label);
  for (const std::uint64_t size : sizesOf(series)) {
    std::vector<Cell> cells{headCell(base::showSize(size))};
    bool any = false;
    for (const Series& s : series) {
      const Row* row = rowAt(s, size);
      cells.push_back(row == nullptr ? numberCell("") : to_cell(*row));
      any = any || (row != nullptr && cells.back().html != kNothing);
    }
    if (any) out.rows.push_back(std::move(cells));
  }
  return withoutEmptyColumns(out);
}

std::string shown(std::optional<double> figure) {
  return figure ? digits(figure) : std::string(kNothing);
}

Cell marked(const Row& row, std::string html) {
  const std::string mark = verdictMark(row);
  return {.html = mark.empty() ? std::move(html) : mark + " " + html, .number = true};
}

std::optional<Point> bandwidthPoint(const Series& series, const Row& row) {
  if (!row.gb_per_s) return std::nullopt;
  Point out = pointOf(row, *row.gb_per_s);
  out.tip = atSize(series, row) + fmt::format(": {} GB/s", digits(row.gb_per_s));
  if (row.ceiling)
    out.tip += fmt::format(", {:.0f} % of {}", row.ceiling->percent, row.ceiling->name);
  const auto& parts = row.gb_per_s_parts;
  const auto [low, high] = std::minmax_element(parts.begin(), parts.end());
  if (parts.size() > 1 && *low > 0) out.low = *low, out.high = *high;
  return out;
}

Cell bandwidthCell(const Row& row) {
  if (row.verdict == Verdict::kFailed) return marked(row, "");
  std::string small;
  if (row.gb_per_s_spread) small += fmt::format("±{:.0f} %", *row.gb_per_s_spread * 100);
  if (row.ceiling)
    small += fmt::format("{}{:.0f} % of max", small.empty() ? "" : ", ", row.ceiling->percent);
  return marked(
      row, shown(row.gb_per_s) + (small.empty() ? "" : " <small>" + escaped(small) + "</small>"));
}

bool isNear(double a, double b) {
  return std::abs(a - b) <= kSameCeiling * std::min(std::abs(a), std::abs(b));
}

// A ceiling by block size. The memory's ceiling depends on which caches hold the working set.
struct CeilingLine {
  std::string name;
  std::map<std::uint64_t, double> by_size;

  bool fits(const std::string& other, const std::map<std::uint64_t, double>& values) const {
    return name == other && std::all_of(values.begin(), values.end(), [&](const auto& value) {
             const auto at = by_size.find(value.first);
             return at == by_size.end() || isNear(at->second, value.second);
           });
  }

  Level level() const {
    Level out;
    for (const auto& [size, value] : by_size)
      out.points.emplace_back(static_cast<double>(size), value);
    const auto [low, high] =
        std::minmax_element(out.points.begin(), out.points.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    if (isNear(low->second, high->second)) {
      const auto middle =
          *(out.points.begin() + static_cast<std::ptrdiff_t>(out.points.size() / 2));
      out.points = {middle};
      out.label = fmt::format("{}: {} GB/s", name, digits(middle.second));
    } else {
      out.label = fmt::format("{}: {} to {} GB/s", name, digits(low->second), digits(high->second));
    }
    return out;
  }
};

// Ceilings of all series with one name become one line if they are close together. If there are too
// many lines, those with the most block sizes are drawn. The tables have all ceilings.
std::vector<Level> levelsOf(const std::vector<Series>& series) {
  std::vector<CeilingLine> found;
  for (const Series& s : series) {
    std::map<std::string, std::map<std::uint64_t, double>> by_name;
    for (const Row& row : s.rows)
      if (row.ceiling && row.ceiling->gb_per_s > 0)
        by_name[row.ceiling->name][chosenSize(row)] = row.ceiling->gb_per_s;
    for (const auto& one : by_name) {
      const auto& name = one.first;
      const auto& values = one.second;
      auto same = std::find_if(found.begin(), found.end(),
                               [&](const CeilingLine& line) { return line.fits(name, values); });
      if (same == found.end()) same = found.insert(found.end(), CeilingLine{name, {}});
      same->by_size.insert(values.begin(), values.end());
    }
  }
  std::sort(found.begin(), found.end(), [](const CeilingLine& a, const CeilingLine& b) {
    return std::pair(b.by_size.size(), a.name) < std::pair(a.by_size.size(), b.name);
  });
  if (found.size() > kMostLevels) found.resize(kMostLevels);
  std::vector<Level> out;
  out.reserve(found.size());
  for (const CeilingLine& line : found) out.push_back(line.level());
  // Highest first, so that the ceilings' letters are in order from top to bottom.
  std::sort(out.begin(), out.end(), [](const Level& a, const Level& b) {
    return std::pair(b.points.back().second, a.label) < std::pair(a.points.back().second, b.label);
  });
  return out;
}

std::optional<Point> latencyPoint(const Series& series, const Row& row) {
  if (!row.latency_us) return std::nullopt;
  const Latency& l = *row.latency_us;
  Point out = pointOf(row, l.p50);
  const auto p99 = p99Of(row);
  out.tip = atSize(series, row) + fmt::format(": p50 {} us, p99 {} us", digits(l.p50), digits(p99));
  if (l.p50 > 0 && p99 && *p99 >= l.p50) out.low = l.p50, out.high = p99;
  return out;
}

Cell latencyCell(const Row& row) {
  if (!row.latency_us) return marked(row, std::string(kNothing));
  return marked(row, digits(row.latency_us->p50) + " <small>p99</small> " + digits(p99Of(row)));
}

}  // namespace

std::string verdictMark(const Row& row) {
  if (isGood(row.verdict)) return {};
  return "<strong class=\"bad\">✗ " + escaped(loudName(row.verdict)) + "</strong>";
}

Figure bandwidthFigure(const std::vector<Series>& series) {
  return {
      .chart = {.id = "bandwidth",
                .title = "Bandwidth over block size",
                .note =
                    "Payload of all pairs together, in 10⁹ bytes per second. Marks are the median "
                    "of a row's parts; whiskers reach from the slowest part to the fastest.",
                .x_title = "block size",
                .y_title = "GB/s",
                .lines = linesOf(series, bandwidthPoint),
                .levels = levelsOf(series)},
      .table = pivot("Bandwidth in GB/s, spread of the parts, percentage of the ceiling", series,
                     bandwidthCell)};
}

Figure latencyFigure(const std::vector<Series>& series) {
  return {
      .chart = {.id = "latency",
                .title = "Latency over block size",
                .note =
                    "Time of one transfer, from its intended start until all its bytes are visible "
                    "at the other end. Marks are the median (p50); whiskers reach up to p99.",
                .x_title = "block size",
                .y_title = "µs",
                .lines = linesOf(series, latencyPoint)},
      .table = pivot("Latency of one transfer in µs: p50 and p99", series, latencyCell)};
}

Figure cpuFigure(const std::vector<Series>& series) {
  const auto point = [](const Series& s, const Row& row) -> std::optional<Point> {
    if (!row.cpu_s_per_gb) return std::nullopt;
    Point out = pointOf(row, *row.cpu_s_per_gb);
    out.tip = atSize(s, row) + fmt::format(": {} CPU s/GB", digits(row.cpu_s_per_gb));
    return out;
  };
  const auto cell = [](const Row& row) { return marked(row, shown(row.cpu_s_per_gb)); };
  return {.chart = {.id = "cpu",
                    .title = "CPU cost over block size",
                    .note = "User and system time of all processes together for 10⁹ bytes. Lower "
                            "is better.",
                    .x_title = "block size",
                    .y_title = "CPU s/GB",
                    .lines = linesOf(series, point)},
          .table = pivot("CPU seconds per GB, of all processes together", series, cell)};
}

}  // namespace viaduct::measure
