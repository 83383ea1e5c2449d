// A backend whose rails and links inject the faults of VIADUCT_FAULTS. It lies between the agent
// and any backend. Threads: as core::Backend.
#pragma once

#include <memory>

#include "agent/faults/fault_source.h"
#include "core/backend.h"

namespace viaduct::agent {

// `source` outlives the result.
std::unique_ptr<core::Backend> withFaults(std::unique_ptr<core::Backend> inner,
                                          FaultSource& source);

}  // namespace viaduct::agent
