// Measures swapping in one process. Threads: one.
#pragma once

#include "measure/run/run.h"
#include "measure/swap/swap.h"

namespace viaduct::measure::swap {

// Returns the cases in the order in which they are measured.
std::vector<Case> casesOf(const SwapRequest& request);

// `result` has all measured cases also after an error.
Status runSwap(const SwapRequest& request, const MemberScene& scene, SwapResult& result);

}  // namespace viaduct::measure::swap
