// The transfers of one member in the replay of a trace. The initiator posts each request's transfer
// at its time, even if earlier transfers have not ended. Threads: one.
#pragma once

#include <memory>

#include "measure/run/row_transfers.h"
#include "measure/run/worker.h"

namespace viaduct::measure {

std::unique_ptr<RowTransfers> traceTransfers(WorkerState& worker, const Workload& row);

}  // namespace viaduct::measure
