// The copies of a swap row, by transfers or by plain calls of the driver. Threads: one.
#pragma once

#include <memory>

#include "measure/run/row_transfers.h"
#include "measure/run/worker.h"

namespace viaduct::measure::swap {

// The pools of blocks in host memory and on the GPU. Rows whose rounds take turns share them.
class Pools;
// Allocates the memory of both pools, large enough for the largest row of the run.
Result<std::shared_ptr<Pools>> makePools(WorkerState& worker);

std::unique_ptr<RowTransfers> swapTransfers(WorkerState& worker, const Workload& row,
                                            std::shared_ptr<Pools> pools);

}  // namespace viaduct::measure::swap
