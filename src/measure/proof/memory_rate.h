// How fast this host copies memory: the ceiling of everything that stays on it. Threads: starts
// some of its own and is back when they have ended.
#pragma once

#include "measure/proof/observation.h"

namespace viaduct::measure::proof {

// Takes about 100 ms. Buffers of several sizes, with plain and with non-temporal stores, whichever
// is faster; the best of some passes, since a ceiling is what is possible.
MemoryRates measureMemoryRates();
// The same, measured once in a process: a machine's memory stays what it is. Threads: any.
const MemoryRates& memoryRates();

// The most that buffers of so many bytes can be copied with; 0 when nothing was measured.
double memoryCeiling(const MemoryRates& rates, std::uint64_t bytes);

}  // namespace viaduct::measure::proof
