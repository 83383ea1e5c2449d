// How fast a row's own streams have moved so far, while it runs: over the whole row, and over
// intervals. Threads: one.
#pragma once

#include <viaduct/deadline.h>

#include <cstdint>
#include <optional>

#include "measure/result/row.h"

namespace viaduct::measure {

// Its time is that of the timed rounds, without the pauses between them.
class Meter {
 public:
  // `interval`: 0: none.
  explicit Meter(Duration interval) : interval_(interval) {}

  // A round begins and ends. `bytes`: a count that only rises within the round.
  void begin(Clock::time_point now, std::uint64_t bytes);
  // An interval that has ended since the last look. A late look makes one that is longer.
  std::optional<RateInterval> look(Clock::time_point now, std::uint64_t bytes);
  void end();
  // What remains at the end of the row; nothing where the row ends with an interval.
  std::optional<RateInterval> rest() const;

  // When the next interval ends; never between rounds.
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
  std::optional<Clock::time_point> begun_;  // while a round runs
  std::uint64_t first_bytes_ = 0;
  Mark before_;    // the rounds before this one
  Mark reported_;  // up to the last interval
  Mark now_;
};

}  // namespace viaduct::measure
