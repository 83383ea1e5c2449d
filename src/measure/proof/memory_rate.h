// Measures how fast this host copies memory, which is the ceiling of all transfers within it.
// Threads: starts some of its own and joins them.
#pragma once

#include <cstdint>
#include <span>

#include "measure/proof/observation.h"

namespace viaduct::measure::proof {

// Takes about 100 ms. Copies buffers of several sizes with plain and with non-temporal stores, and
// takes the faster. Takes the best of several passes, because a ceiling is the possible rate.
MemoryRates measureMemoryRates();
// Returns the same, measured once in a process. Threads: any.
const MemoryRates& memoryRates();

// Returns the highest rate of copies of that many bytes, or 0 if nothing was measured.
double copyCeiling(std::span<const CopyRate> rates, std::uint64_t bytes);

}  // namespace viaduct::measure::proof
