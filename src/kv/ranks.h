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

// Whether `tp` ranks can divide the heads evenly, or each rank can have one head, with equally many
// copies of each head.
bool divides(std::uint32_t tp, std::uint32_t heads);
// The heads of a rank. divides(tp, heads) has to be true.
Heads headsOf(std::uint32_t heads, std::uint32_t tp, std::uint32_t rank);

// The heads that a rank of the destination takes from a rank of the source; their number may be 0.
// Several ranks of the destination that have the same head take it from different ranks of the
// source, as long as there are enough.
Heads headsMoved(const KvCache& cache, const KvLayout& source, const KvLayout& destination);

}  // namespace viaduct::kv
