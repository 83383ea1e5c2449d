// The transfers of one member in a row of a pipeline: one stage alone, all stages at once, or the
// whole pipeline. Threads: one, besides those that move() starts, one for each flow.
#pragma once

#include <memory>

#include "measure/run/pipeline_flows.h"
#include "measure/run/row_transfers.h"

namespace viaduct::measure::pipeline {

// `flows` must be open. All rows of the pipeline share `flows`.
std::unique_ptr<RowTransfers> stageTransfers(WorkerState& worker, const Workload& row,
                                             std::shared_ptr<PipelineFlows> flows);

}  // namespace viaduct::measure::pipeline
