// Measures a suite round after round. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "measure/report/suite.h"
#include "measure/run/turns.h"

namespace viaduct::measure {

// The callbacks of conduct().
struct SuiteHands {
  // Measures one test once. At a rank other than 0 the outcome has no rows.
  std::function<RunOutcome(std::uint32_t round, std::size_t test)> run = {};
  // Saves the suite after each round.
  std::function<Status(const Suite& suite)> save = {};
};

// Continues after the rounds that are complete. Discards an incomplete round.
TurnsEnd conduct(Suite& suite, const SuiteHands& hands);

}  // namespace viaduct::measure
