// Measures one row: prepares both sides, warms up, times, and checks what arrived. Threads: one.
#pragma once

#include <viaduct/agent.h>

#include "measure/result/row.h"
#include "measure/run/target.h"

namespace viaduct::measure {

// `peer` is the agent in whose process `target` works. What cannot be measured is a row that says
// why; an error is the end of all rows: the target is lost, or `stop` was set.
Result<Row> measureRow(Agent& agent, const Peer& peer, Target& target, const Workload& workload,
                       const StopFlag& stop);

}  // namespace viaduct::measure
