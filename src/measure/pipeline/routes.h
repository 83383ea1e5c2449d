// The transfers that measure a pipeline, and their order in a round. Threads: pure functions and
// plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/pipeline/pipeline.h"

namespace viaduct::measure::pipeline {

// One end of a flow.
struct End {
  enum class Kind : std::uint8_t {
    kStorage,
    kMemory,  // of all bytes: an end of the pipeline
    kRing,    // of some chunks: between two stages
  };
  std::string label = {};  // of its Pin
  std::uint32_t rank = 0;
  Kind kind = Kind::kStorage;
};

// A flow of the plan. The rank of `from` initiates it.
struct Route {
  std::string name = {};  // "load", "pipeline"
  End from = {}, into = {};
};

// Returns the stages in their order. With several stages, the pipeline follows.
std::vector<Route> routesOf(const Pipeline& pipeline);

// Flows that run at the same time.
struct Case {
  std::string name = {};
  std::vector<std::uint32_t> routes = {};  // indices
};
// Returns the cases of a round: each stage alone, all together, and the pipeline. Of one stage: the
// stage alone.
std::vector<Case> casesOf(const std::vector<Route>& routes);

}  // namespace viaduct::measure::pipeline
