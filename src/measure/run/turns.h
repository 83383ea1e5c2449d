// Measures several configurations in turns, round after round, so that drift of the machine favours
// none of them. `bench --against` and `suite` use it (docs/design/0058). Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/run/run.h"

namespace viaduct::measure {

struct Turn {
  std::uint32_t round = 0;  // from 0
  std::size_t side = 0;     // the number of the configuration
  friend bool operator==(const Turn&, const Turn&) = default;
};

// Returns the order of the sides in a round. Every second round reverses the one before, so that
// drift favours no side over two rounds. Each pair of rounds begins with another side, so that
// every side comes after several other sides.
std::vector<std::size_t> turnOrder(std::size_t sides, std::uint32_t round);

struct TurnsEnd {
  RunEnd end = RunEnd::kComplete;
  std::string problem = {};  // what ended the turns early; empty: complete
};

struct TurnHands {
  // Measures one side once, and keeps the result.
  std::function<TurnsEnd(const Turn& turn)> turn = {};
  // Called after every complete round.
  std::function<TurnsEnd(std::uint32_t round)> whole = {};
};

// Runs the rounds from `first` to `rounds` - 1. Stops at the first turn or round whose TurnsEnd is
// not complete, and returns it. Otherwise returns a complete one.
TurnsEnd takeTurns(std::size_t sides, std::uint32_t first, std::uint32_t rounds,
                   const TurnHands& hands);

// True if both sides were measured in turns, judged by the times of their starts: neither side is
// ever more than two runs ahead. If one side ran before the other, drift of the machine would look
// like a difference.
bool tookTurns(const std::vector<Report>& a, const std::vector<Report>& b);

}  // namespace viaduct::measure
