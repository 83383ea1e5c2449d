#include <viaduct/statistics.h>

#include <algorithm>

namespace viaduct {

void Latencies::add(std::chrono::nanoseconds time, std::uint64_t times) {
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), time);
  counts[static_cast<std::size_t>(bound - kBounds.begin())] += times;
  sum += time * static_cast<std::int64_t>(times);
}

}  // namespace viaduct
