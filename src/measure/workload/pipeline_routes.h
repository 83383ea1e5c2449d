// Plans the flows that measure a pipeline, and their order in a round. Threads: pure functions and
// plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/workload/pipeline.h"

namespace viaduct::measure::pipeline {

// One end of a flow.
struct End {
  enum class Kind : std::uint8_t {
    kStorage,
    kMemory,  // memory for all bytes: an end of the pipeline
    kRing,    // memory for some chunks: between two stages
  };
  std::string label = {};  // of its Pin
  std::uint32_t rank = 0;
  Kind kind = Kind::kStorage;
  std::optional<std::uint32_t> gpu = {};  // the GPU that has the memory; nothing: host
};

// A flow of the plan. The rank of `from` initiates it.
struct Route {
  std::string name = {};  // "load", "pipeline"
  End from = {}, into = {};
};

// Returns the stages in order. If there are several, the legs of the whole pipeline follow. A
// pipeline without a GPU has one leg, a single transfer, which the library stages through host
// memory itself. If the pipeline has a GPU, each stage is a leg, and begins in the memory where the
// leg before it ends.
std::vector<Route> routesOf(const Pipeline& pipeline);

// Flows that run at the same time.
struct Case {
  std::string name = {};
  std::vector<std::uint32_t> routes = {};  // indices
  bool chain = false;                      // each flow moves the bytes of the flow before it
};
// Returns the cases of a round: each stage alone, all stages together, and the whole pipeline. A
// pipeline of one stage has only the first case. The first `stages` entries of `routes` are stages.
std::vector<Case> casesOf(const std::vector<Route>& routes, std::size_t stages);

}  // namespace viaduct::measure::pipeline
