// Runs flows of two members at the same time, so that each flow competes with all other flows.
// Threads: one, besides those that it starts.
#pragma once

#include <viaduct/agent.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/fields.h"
#include "measure/run/flow.h"
#include "measure/run/row_transfers.h"

namespace viaduct::measure::pipeline {

// A flow and its place in a chain, if it has one.
struct OwnFlow {
  Flow& flow;
  Neighbours neighbours = {};
};

struct FlowsScene {
  Agent& agent;
  const Moving& moving;
  const Peer* other;   // null: the other member has no flow in this part
  std::uint64_t part;  // number of this part of the measurement, which is the same at both members
  RingGate* across = nullptr;  // of the ring between the two members' flows
};

// The note that a member sends to the other member.
struct FlowNews {
  std::uint64_t part = 0;
  bool moved = false;    // every flow of the member has moved its bytes once
  RingCounts ring = {};  // of FlowsScene::across
};
auto fields(base::Is<FlowNews> auto& news) {
  return base::list(news.part, news.moved, news.ring.filled, news.ring.emptied, news.ring.complete,
                    news.ring.broken);
}

// Repeats each flow for `duration`, and until every flow of both members has moved its bytes once.
// So the slowest flow never runs alone. Both members call this at the same time, and an error of
// one member ends the flows of both. Returns at once if `own` is empty. The first flow of a chain
// decides how often the chain repeats.
Status runAtOnce(const std::vector<OwnFlow>& own, const FlowsScene& scene,
                 std::chrono::nanoseconds duration);

}  // namespace viaduct::measure::pipeline
