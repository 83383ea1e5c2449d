// Compares the clock that times a row with a second clock. Threads: one at a time.
#pragma once

#include <cstdint>

namespace viaduct::measure::proof {

// The difference between the two clocks.
struct ClockDrift {
  double seconds = 0;  // compared duration, by the second clock
  double ahead = 0;    // seconds that the first clock gained; negative: lost
  double largest = 0;  // the part of `ahead` from the largest single step
  bool jumped() const;
  // True if the clocks differ by more than two correct clocks of one machine can.
  bool isImpossible() const;
  friend bool operator==(const ClockDrift&, const ClockDrift&) = default;
};

class ClockWatch {
 public:
  ClockWatch() { start(); }
  void start();  // begins a step; the time since the last step does not count
  void look();   // ends a step, and begins the next
  const ClockDrift& drift() const { return drift_; }

 private:
  std::int64_t first_ns_ = 0, second_ns_ = 0;
  ClockDrift drift_;
};

}  // namespace viaduct::measure::proof
