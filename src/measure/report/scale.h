// Axes: the positions of values, and the labelled ticks. Threads: pure.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace viaduct::measure {

struct AxisRange {
  double low = 0, high = 0;
  bool empty = true;
  void add(double value) {
    low = empty || value < low ? value : low;
    high = empty || value > high ? value : high;
    empty = false;
  }
};

class Scale {
 public:
  // `from` and `to` are the pixels of the range's ends.
  Scale(AxisRange range, bool logarithmic, double from, double to)
      : low_(value(range.low, logarithmic)),
        span_(value(range.high, logarithmic) - low_),
        log_(logarithmic),
        from_(from),
        to_(to) {}
  double at(double v) const {
    const double part = span_ == 0 ? 0.5 : (value(v, log_) - low_) / span_;
    return from_ + part * (to_ - from_);
  }

 private:
  static double value(double v, bool logarithmic) { return logarithmic ? std::log2(v) : v; }
  double low_, span_;
  bool log_;
  double from_, to_;
};

struct Tick {
  double value = 0;
  std::string label = {};
};

// Widens the range to ticks at 1, 2 and 5 times powers of ten, and returns them. Over many decades,
// uses powers of ten alone, about `most` of them.
std::vector<Tick> decadeTicks(AxisRange& range, std::size_t most);
// Returns at most `most` of the sizes, which must be in ascending order, so far apart that their
// labels do not overlap. Widens a range of one value.
std::vector<Tick> sizeTicks(AxisRange& range, const std::vector<double>& sizes, std::size_t most);
// Returns ticks at powers of two, with plain numbers as labels.
std::vector<Tick> countTicks(AxisRange& range, std::size_t most);
// Returns ticks from 0 to at least 100, in steps of at least 20.
std::vector<Tick> percentTicks(AxisRange& range);

// Returns ticks around 0 in steps of 1, 2 or 5 times a power of ten. 0 is always among them.
std::vector<Tick> changeTicks(AxisRange& range, std::size_t most);

}  // namespace viaduct::measure
