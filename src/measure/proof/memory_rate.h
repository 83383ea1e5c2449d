// Measures how fast this host copies memory, which is the ceiling of all transfers within it.
// Threads: starts some of its own and joins them.
#pragma once

#include <cstdint>
#include <span>

#include "measure/proof/observation.h"

namespace viaduct::measure::proof {

// All threads together copy from no more bytes than this. No cache is larger, and allocating more
// would take long.
constexpr std::uint64_t kLargestCopied = std::uint64_t{512} << 20U;

// Takes about 100 ms, and up to 500 ms for the largest working sets. Copies buffers of several
// sizes with plain and with non-temporal stores, and takes the faster. Takes the best of several
// passes, because a ceiling is the possible rate. One of the sizes is near `working_set`, so that
// no cache makes the ceiling of large rows too high.
MemoryRates measureMemoryRates(std::uint64_t working_set);
// Like measureMemoryRates(), but measures only if the process has not yet measured for such a large
// set. Threads: any.
MemoryRates memoryRates(std::uint64_t working_set);

// Returns the highest rate of copies of that many bytes, or 0 if nothing was measured.
double copyCeiling(std::span<const CopyRate> rates, std::uint64_t bytes);

}  // namespace viaduct::measure::proof
