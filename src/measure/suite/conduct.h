// Measures a suite, round after round. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "measure/run/run.h"
#include "measure/suite/suite.h"

namespace viaduct::measure {

// What the conductor has others do.
struct SuiteHands {
  // Measures one test once; at ranks that have no rows an outcome without any.
  std::function<RunOutcome(std::uint32_t round, std::size_t test)> run = {};
  // Keeps what is there, after every round.
  std::function<Status(const Suite& suite)> save = {};
};

struct SuiteEnd {
  RunEnd end = RunEnd::kComplete;
  std::string problem = {};  // unless complete
};

// Goes on behind the rounds that are done. A round that does not come to its end leaves nothing.
SuiteEnd conduct(Suite& suite, const SuiteHands& hands);

}  // namespace viaduct::measure
