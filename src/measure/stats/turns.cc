#include "measure/stats/turns.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace viaduct::measure {

bool tookTurns(const std::vector<Report>& a, const std::vector<Report>& b) {
  // Shares of each side, so that one side may have more runs.
  constexpr double kMostAhead = 2;
  const double step_a = 1.0 / static_cast<double>(a.size());
  const double step_b = 1.0 / static_cast<double>(b.size());
  std::map<std::string, double> steps;  // the order of starts in one second is unknown
  for (const Report& report : a) steps[report.started] += step_a;
  for (const Report& report : b) steps[report.started] -= step_b;
  if (steps.contains("")) return false;
  double lead = 0;
  return std::all_of(steps.begin(), steps.end(), [&](const auto& step) {
    lead += step.second;
    return std::abs(lead) <= kMostAhead * std::max(step_a, step_b) + 1e-9;
  });
}

}  // namespace viaduct::measure
