// Estimates when the last row of a run ends. Threads: plain values.
#pragma once

#include <viaduct/deadline.h>

#include <chrono>
#include <cstddef>
#include <optional>

namespace viaduct::app {

// The estimate comes from the mean time of the finished rows. While a row runs, the estimate never
// grows.
class TimeLeft {
 public:
  // Row `number` starts. Row 0 starts the clock, so that the wait for other members does not count.
  void start(std::size_t number, Clock::time_point now);
  // Returns nothing before the first row has finished.
  std::optional<std::chrono::seconds> at(Clock::time_point now, std::size_t rows) const;

 private:
  Clock::time_point first_ = {}, current_ = {};  // the starts of row 0 and of the running row
  std::size_t number_ = 0;
};

}  // namespace viaduct::app
