#include "measure/workload/layout.h"

#include <algorithm>
#include <utility>

#include "measure/workload/collective.h"

namespace viaduct::measure {
namespace {

// True if part i of n and part j of m of the same whole overlap.
bool overlap(std::uint64_t i, std::uint64_t n, std::uint64_t j, std::uint64_t m) {
  return i * m < (j + 1) * n && j * n < (i + 1) * m;
}

}  // namespace

std::vector<Pair> pairsOf(Scheme scheme, std::uint32_t initiators, std::uint32_t targets) {
  std::vector<Pair> pairs;
  if (scheme == Scheme::kPairwise) {
    for (std::uint32_t k = 0; k < std::max(initiators, targets); ++k)
      pairs.push_back({k % initiators, k % targets});
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  }
  for (std::uint32_t i = 0; i < initiators; ++i)
    for (std::uint32_t j = 0; j < targets; ++j)
      if (scheme != Scheme::kTp || overlap(i, initiators, j, targets)) pairs.push_back({i, j});
  return pairs;
}

std::vector<Pair> pairsOf(const Layout& layout) {
  if (layout.stored()) return pairsOf(Scheme::kPairwise, layout.initiators, layout.initiators);
  if (!layout.pattern()) return pairsOf(layout.scheme, layout.initiators, layout.targets);
  std::vector<Pair> pairs = layout.scheme == Scheme::kMatrix
                                ? flowsOf(layout.matrix)
                                : flowsOf(layout.scheme, layout.initiators);
  if (layout.reads)
    for (Pair& pair : pairs) std::swap(pair.initiator, pair.target);
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

std::vector<Stream> streamsOf(const Layout& layout, std::uint32_t threads, bool bidirectional) {
  std::vector<Stream> streams;
  std::vector<std::uint32_t> at_initiator(layout.initiators),
      at_target(layout.stored() ? layout.initiators : layout.targets);
  for (const Pair& pair : pairsOf(layout))
    for (std::uint32_t thread = 0; thread < threads; ++thread)
      for (const bool reverse : {false, true}) {
        if (reverse && !bidirectional) continue;
        streams.push_back({.pair = pair,
                           .reverse = reverse,
                           .bytes = bytesOf(layout, pair),
                           .initiator_part = at_initiator[pair.initiator]++,
                           .target_part = at_target[pair.target]++});
      }
  for (Stream& stream : streams) {
    stream.initiator_parts = at_initiator[stream.pair.initiator];
    stream.target_parts = at_target[stream.pair.target];
  }
  return streams;
}

}  // namespace viaduct::measure
