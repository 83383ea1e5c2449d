#include "viaduct/time_left.h"

#include <algorithm>

namespace viaduct::app {

void TimeLeft::start(std::size_t number, Clock::time_point now) {
  if (number == 0) first_ = now;
  number_ = number;
  current_ = now;
}

std::optional<std::chrono::seconds> TimeLeft::at(Clock::time_point now, std::size_t rows) const {
  if (number_ == 0) return std::nullopt;
  const Duration each = (current_ - first_) / static_cast<std::int64_t>(number_);
  const auto later = static_cast<std::int64_t>(rows - std::min(rows, number_ + 1));
  const Duration left = each * later + std::max(each - (now - current_), Duration::zero());
  return std::max(std::chrono::ceil<std::chrono::seconds>(left), std::chrono::seconds(1));
}

}  // namespace viaduct::app
