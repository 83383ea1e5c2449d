#include "measure/report/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/sizes.h"

namespace viaduct::measure {
namespace {

constexpr int kLeastExponent = -300, kMostExponent = 300;

int decadeBelow(double value) {
  return std::clamp(static_cast<int>(std::floor(std::log10(value) + 1e-9)), kLeastExponent,
                    kMostExponent);
}

// Widens a range of a single value, so that the value is in the middle of a logarithmic axis.
void widen(AxisRange& range) {
  if (range.low != range.high) return;
  range.low /= 2;
  range.high *= 2;
}

// Returns the powers of two in the range. Skips some at equal distances, so that at most `most` are
// left.
std::vector<double> powersOfTwo(AxisRange& range, std::size_t most) {
  widen(range);
  const int first = static_cast<int>(std::ceil(std::log2(range.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(range.high) + 1e-9));
  const int count = last - first + 1;
  const int step = std::max(1, (count + static_cast<int>(most) - 1) / static_cast<int>(most));
  std::vector<double> out;
  for (int e = first; e <= last; e += step) out.push_back(std::exp2(e));
  if (out.empty()) out = {range.low, range.high};  // both ends lie between the same two powers
  return out;
}

// Returns a short label for an axis: 0.5, 200, 2k, 20k, 1M.
std::string rateLabel(double value) {
  if (value >= 1e6 && value < 1e12) return fmt::format("{:.6g}M", value / 1e6);
  if (value >= 1e3 && value < 1e12) return fmt::format("{:.6g}k", value / 1e3);
  return fmt::format("{:.6g}", value);
}

}  // namespace

std::vector<Tick> decadeTicks(AxisRange& range, std::size_t most) {
  if (range.low == range.high) range.high *= 1.01;  // a readable scale needs two ticks
  const int first = decadeBelow(range.low), last = decadeBelow(range.high) + 1;
  const auto decades = static_cast<std::size_t>(last - first);
  const bool fine = 3 * decades <= 2 * most;
  const int step = std::max(1, static_cast<int>((decades + most - 1) / most));
  std::vector<double> values;
  for (int e = first; e <= last; e += step)
    for (const double digit : {1.0, 2.0, 5.0})
      if (digit == 1 || fine) values.push_back(digit * std::pow(10, e));
  // Keeps the tick below the lowest value, the tick above the highest, and all between.
  const auto above = std::find_if(values.begin(), values.end(),
                                  [&](double v) { return v >= range.high * (1 - 1e-9); });
  if (above != values.end()) values.erase(above + 1, values.end());
  while (values.size() > 2 && values[1] <= range.low) values.erase(values.begin());
  range.low = std::min(range.low, values.front());
  range.high = std::max(range.high, values.back());
  std::vector<Tick> out;
  out.reserve(values.size());
  for (const double v : values) out.push_back({v, rateLabel(v)});
  return out;
}

std::vector<Tick> sizeTicks(AxisRange& range, const std::vector<double>& sizes, std::size_t most) {
  widen(range);
  const double gap = std::log2(range.high / range.low) / static_cast<double>(most - 1) - 1e-9;
  std::vector<Tick> out;
  for (const double size : sizes)
    if (out.empty() || std::log2(size / out.back().value) >= gap)
      out.push_back({size, base::showSize(static_cast<std::uint64_t>(size))});
  return out;
}

std::vector<Tick> countTicks(AxisRange& range, std::size_t most) {
  std::vector<Tick> out;
  for (const double v : powersOfTwo(range, most)) out.push_back({v, fmt::format("{:.0f}", v)});
  return out;
}

std::vector<Tick> percentTicks(AxisRange& range) {
  range.low = 0;
  range.high = std::max(100.0, std::ceil(range.high / 20) * 20);
  const double step = range.high > 200 ? std::ceil(range.high / 100) * 20 : 20;
  std::vector<Tick> out;
  for (double v = 0; v <= range.high; v += step) out.push_back({v, fmt::format("{:.0f} %", v)});
  return out;
}

std::vector<Tick> changeTicks(AxisRange& range, std::size_t most) {
  constexpr double kLeastSpan = 1;
  range.add(0);
  const double span = std::max(range.high - range.low, kLeastSpan);
  const double least = span / static_cast<double>(std::max<std::size_t>(most, 3) - 2);
  const double power = std::pow(10, std::floor(std::log10(least)));
  double step = 10 * power;
  for (const double digit : {5.0, 2.0, 1.0})
    if (digit * power >= least * (1 - 1e-9)) step = digit * power;
  const auto first = static_cast<int>(std::floor(range.low / step + 1e-9));
  const auto last = std::max(static_cast<int>(std::ceil(range.high / step - 1e-9)), first + 1);
  range.low = first * step;
  range.high = last * step;
  std::vector<Tick> out;
  for (int i = first; i <= last; ++i)
    out.push_back({i * step, i == 0 ? "0 %" : fmt::format("{:+.6g} %", i * step)});
  return out;
}

}  // namespace viaduct::measure
