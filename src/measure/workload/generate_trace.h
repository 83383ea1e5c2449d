// Makes traces with the statistics of published ones, from a seed. Threads: pure functions.
#pragma once

#include <cstdint>

#include "base/words.h"
#include "measure/workload/trace.h"

namespace viaduct::measure {

// The published trace whose statistics are reproduced: docs/kv-trace.md lists them.
enum class TraceShape : std::uint8_t { kConversation, kSynthetic };
inline constexpr base::Words<TraceShape, 2> kTraceShapes{
    {{"conversation", TraceShape::kConversation}, {"synthetic", TraceShape::kSynthetic}}};

struct TraceRecipe {
  TraceShape shape = TraceShape::kConversation;
  std::uint32_t requests = 1000;
  std::uint64_t seed = 1;
  std::uint32_t divide = 1;  // divides all lengths by this number, for small machines
};
// The trace is in the format of Mooncake.
Trace generateTrace(const TraceRecipe& recipe);

}  // namespace viaduct::measure
