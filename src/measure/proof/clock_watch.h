// Whether the clock that times a row keeps step with a second one. Threads: one at a time.
#pragma once

#include <cstdint>

namespace viaduct::measure::proof {

// How far a clock ran from the second one.
struct ClockDrift {
  double seconds = 0;  // of the second clock, over which they were compared
  double ahead = 0;    // seconds that the first one gained; negative: lost
  double largest = 0;  // of which in the one step that gained or lost most
  bool jumped() const;
  // More than two clocks of one machine may differ.
  bool isImpossible() const;
  friend bool operator==(const ClockDrift&, const ClockDrift&) = default;
};

class ClockWatch {
 public:
  ClockWatch() { start(); }
  void start();  // time before it does not count
  void look();   // ends a step
  const ClockDrift& drift() const { return drift_; }

 private:
  std::int64_t first_ns_ = 0, second_ns_ = 0;
  ClockDrift drift_;
};

}  // namespace viaduct::measure::proof
