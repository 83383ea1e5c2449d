// Runs flows of two members at the same time, so that each competes with all others. Threads: one,
// besides those that it starts.
#pragma once

#include <viaduct/agent.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/stop.h"
#include "measure/pipeline/flow.h"
#include "meet/groups/group.h"

namespace viaduct::measure::pipeline {

struct FlowsScene {
  Agent& agent;
  const meet::Group& group;
  const base::StopFlag& stop;
  const Peer* other;   // null: the other member has no flow at this time
  std::uint64_t part;  // tells the parts of a measurement apart, and is the same at both members
};

// Each flow repeats for `duration`, and until every flow of both members has moved its bytes once.
// So the slowest one never runs alone. Both members call it at the same time, and an error of one
// ends the flows of both. Without own flows it returns at once.
Status runAtOnce(const std::vector<Flow*>& own, const FlowsScene& scene,
                 std::chrono::nanoseconds duration);

}  // namespace viaduct::measure::pipeline
