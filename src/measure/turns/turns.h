// Several configurations measured in turns, round after round, so that drift of the machine favours
// none of them: the engine of `bench --against` and of `suite` (docs/design/0023). Threads: one at
// a time.
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
  std::size_t side = 0;     // the configuration
  friend bool operator==(const Turn&, const Turn&) = default;
};

// The sides in the order in which they take their turns in a round. Every second round is the
// mirror of the one before, so that drift favours none over two rounds. From pair to pair of rounds
// another side begins, so that each follows upon others.
std::vector<std::size_t> turnOrder(std::size_t sides, std::uint32_t round);

struct TurnsEnd {
  RunEnd end = RunEnd::kComplete;
  std::string problem = {};  // unless complete
};

struct TurnHands {
  // Measures one side once, and keeps what that gives.
  std::function<TurnsEnd(const Turn& turn)> turn = {};
  // After every whole round.
  std::function<TurnsEnd(std::uint32_t round)> whole = {};
};

// The rounds from `first` up to `rounds`. The first end that is not complete is theirs.
TurnsEnd takeTurns(std::size_t sides, std::uint32_t first, std::uint32_t rounds,
                   const TurnHands& hands);

// Whether the runs of both sides were measured in turns, by the times of their starts: neither side
// is ever more than two runs ahead. Where one side is measured before the other, drift of the
// machine looks like a difference.
bool tookTurns(const std::vector<Report>& a, const std::vector<Report>& b);

}  // namespace viaduct::measure
