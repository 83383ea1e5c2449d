// The heads of tensor-parallel ranks. Threads: pure functions.
#pragma once

#include <viaduct/kv.h>

#include <cstdint>

namespace viaduct::kv {

// A range of a model's heads.
struct Heads {
  std::uint32_t first = 0, count = 0;
  friend bool operator==(const Heads&, const Heads&) = default;
};

// Whether so many ranks can divide the heads evenly, or all have copies of one head each.
bool divides(std::uint32_t tp, std::uint32_t heads);
// The heads of a rank. divides(tp, heads) has to be true.
Heads headsOf(std::uint32_t heads, std::uint32_t tp, std::uint32_t rank);

// The heads that a rank of the destination takes from a rank of the source; their number may be 0.
// The ranks of the destination that have copies of one head take it from different copies, as far
// as there are some.
Heads headsMoved(const KvCache& cache, const KvLayout& source, const KvLayout& destination);

}  // namespace viaduct::kv
