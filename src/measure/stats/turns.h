// In which order the runs of two sides are measured. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

// A, B, B, A, and again: drift of the machine favours neither side.
inline bool isTurnOfA(std::uint32_t turn) { return turn % 4 == 0 || turn % 4 == 3; }

// Whether the runs of both sides were measured in turns, by the times of their starts: neither side
// is ever more than two runs ahead. Where one side is measured before the other, drift of the
// machine looks like a difference.
bool tookTurns(const std::vector<Report>& a, const std::vector<Report>& b);

}  // namespace viaduct::measure
