#include "base/waiting.h"

#include <fmt/format.h>

#include <algorithm>

namespace viaduct::base {

void Waiting::tell(const Error& so_far) {
  const auto now = Clock::now();
  due_ = now + kEvery;
  std::string line = fmt::format("still waiting: {}: {}", so_far.operation, so_far.detail);
  if (until_ != Clock::time_point::max())
    line += fmt::format("; {} s left", std::chrono::ceil<std::chrono::seconds>(
                                           std::max(until_ - now, Clock::duration::zero()))
                                           .count());
  say_(line);
}

}  // namespace viaduct::base
