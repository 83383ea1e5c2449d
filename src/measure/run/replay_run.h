// One member's part of the replay of a trace. Threads: one.
#pragma once

#include "measure/run/worker.h"

namespace viaduct::measure {

// As Worker::measure(), for a row with a trace. The initiator posts each request's transfer at its
// time, whether or not earlier ones have ended.
Result<Composed> runReplay(WorkerState& worker, const Workload& row);

}  // namespace viaduct::measure
