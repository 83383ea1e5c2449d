// Measures rows of any kind: prepares, warms up, times, stops and checks their transfers, and
// collects their claims.
// Threads: one, besides those that the row's transfers start.
#pragma once

#include <memory>
#include <vector>

#include "measure/run/row_transfers.h"
#include "measure/run/worker.h"

namespace viaduct::measure {

// Measures rows whose rounds take turns. All members call it for the same rows, and rank 0 gets the
// results, one for each row.
Result<std::vector<Composed>> measureInTurns(WorkerState& worker,
                                             std::vector<std::unique_ptr<RowTransfers>> rows);

}  // namespace viaduct::measure
