#include "measure/result/statistics.h"

#include <algorithm>
#include <cmath>

namespace viaduct::measure {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<double> middle(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(median(values));
}

double spread(const std::vector<double>& values) {
  const double middle = median(values);
  if (middle == 0) return 0;
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double v : values) distances.push_back(std::abs(v - middle));
  return median(std::move(distances)) / std::abs(middle);
}

double smallestCaught(std::uint64_t checks) {
  constexpr double kUnseen = 0.001;  // part of rows in which checks may miss skipped transfers
  return checks == 0 ? 1 : 1 - std::pow(kUnseen, 1 / static_cast<double>(checks));
}

}  // namespace viaduct::measure
