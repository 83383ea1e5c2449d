// Measures a suite, round after round. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "measure/suite/suite.h"
#include "measure/turns/turns.h"

namespace viaduct::measure {

// What the conductor has others do.
struct SuiteHands {
  // Measures one test once; at ranks that have no rows an outcome without any.
  std::function<RunOutcome(std::uint32_t round, std::size_t test)> run = {};
  // Keeps what is there, after every round.
  std::function<Status(const Suite& suite)> save = {};
};

// Goes on behind the rounds that are done. A round that does not come to its end leaves nothing.
TurnsEnd conduct(Suite& suite, const SuiteHands& hands);

}  // namespace viaduct::measure
