#include "kv/ranks.h"

#include <algorithm>

namespace viaduct::kv {
namespace {

// The number of ranks that have a copy of one head.
std::uint32_t copies(std::uint32_t heads, std::uint32_t tp) { return std::max(1U, tp / heads); }

}  // namespace

bool divides(std::uint32_t tp, std::uint32_t heads) {
  return tp != 0 && heads != 0 && (heads % tp == 0 || tp % heads == 0);
}

Heads headsOf(std::uint32_t heads, std::uint32_t tp, std::uint32_t rank) {
  if (tp > heads) return {rank / copies(heads, tp), 1};
  return {rank * (heads / tp), heads / tp};
}

Heads headsMoved(const KvCache& cache, const KvLayout& source, const KvLayout& destination) {
  const Heads from = headsOf(cache.kv_heads, source.tp, source.rank);
  const Heads to = headsOf(cache.kv_heads, destination.tp, destination.rank);
  const std::uint32_t low = std::max(from.first, to.first);
  const std::uint32_t high = std::min(from.first + from.count, to.first + to.count);
  const std::uint32_t offered = copies(cache.kv_heads, source.tp);
  const std::uint32_t wanted = copies(cache.kv_heads, destination.tp);
  const bool chosen = source.rank % offered == destination.rank % wanted * offered / wanted;
  return {low, low < high && chosen ? high - low : 0};
}

}  // namespace viaduct::kv
