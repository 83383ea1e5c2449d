// Runs one member's part of one row. Threads: one, besides the threads that it starts for its
// lanes.
#pragma once

#include "measure/run/worker.h"

namespace viaduct::measure {

// All members call it for the same row. Rank 0 gets the result.
Result<Composed> runRow(WorkerState& worker, const Workload& row);

}  // namespace viaduct::measure
