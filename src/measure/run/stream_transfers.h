// The transfers of one member's streams: blocks between two memories or between memory and storage,
// KV caches and patterns. Threads: one, besides those that move() starts, one for each lane.
#pragma once

#include <memory>

#include "measure/run/row_transfers.h"
#include "measure/run/worker.h"

namespace viaduct::measure {

std::unique_ptr<RowTransfers> streamTransfers(WorkerState& worker, const Workload& row);

}  // namespace viaduct::measure
