#include "measure/run/turns.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

namespace viaduct::measure {

std::vector<std::size_t> turnOrder(std::size_t sides, std::uint32_t round) {
  std::vector<std::size_t> order(sides);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (sides == 0) return order;
  const auto turn = static_cast<std::ptrdiff_t>(round / 2 % sides);
  std::rotate(order.begin(), order.begin() + turn, order.end());
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

TurnsEnd takeTurns(std::size_t sides, std::uint32_t first, std::uint32_t rounds,
                   const TurnHands& hands) {
  for (std::uint32_t round = first; round < rounds; ++round) {
    for (const std::size_t side : turnOrder(sides, round))
      if (TurnsEnd end = hands.turn({round, side}); end.end != RunEnd::kComplete) return end;
    if (TurnsEnd end = hands.whole(round); end.end != RunEnd::kComplete) return end;
  }
  return {};
}

bool tookTurns(const std::vector<Report>& a, const std::vector<Report>& b) {
  // Measures the lead of a side as a part of its runs, because the sides may have different numbers
  // of runs.
  constexpr double kMostAhead = 2;
  const double step_a = 1.0 / static_cast<double>(a.size());
  const double step_b = 1.0 / static_cast<double>(b.size());
  std::map<std::string, double> steps;  // by second, because the order within a second is unknown
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
