// Measures the rate of a row's own streams while it runs: over the whole row, and over intervals.
// Threads: one.
#pragma once

#include <viaduct/deadline.h>

#include <cstdint>
#include <optional>

#include "measure/result/row.h"

namespace viaduct::measure {

// Measures a row's rate. The meter's clock runs only in timed rounds, not in pauses between them.
class Meter {
 public:
  // An `interval` of 0 means no intervals.
  explicit Meter(Duration interval) : interval_(interval) {}

  // begin() and end() enclose a timed round. `bytes` is a count that only rises within a round.
  void begin(Clock::time_point now, std::uint64_t bytes);
  // Returns the interval that has ended since the last call. A late call returns a longer interval.
  std::optional<RateInterval> look(Clock::time_point now, std::uint64_t bytes);
  void end();
  // Returns the unreported rest at the end of the row, or nothing if the row ended with an
  // interval.
  std::optional<RateInterval> rest() const;

  // Returns the end of the next interval, or time_point::max() between rounds.
  Clock::time_point due() const;
  double gbPerSecond() const { return rateOf({}, now_); }

 private:
  struct Mark {
    Duration at{0};
    std::uint64_t bytes = 0;
  };
  static double rateOf(const Mark& from, const Mark& to);
  static RateInterval between(const Mark& from, const Mark& to);

  const Duration interval_;
  std::optional<Clock::time_point> begun_;  // the start of the running round
  std::uint64_t first_bytes_ = 0;
  Mark before_;    // totals of earlier rounds
  Mark reported_;  // totals up to the last reported interval
  Mark now_;
};

}  // namespace viaduct::measure
