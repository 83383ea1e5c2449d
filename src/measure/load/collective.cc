#include "measure/load/collective.h"

#include <algorithm>

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kAligned = 16;

// Returns member i with member i + 1, from the first member to the last.
std::vector<Pair> chain(std::uint32_t members) {
  std::vector<Pair> out;
  for (std::uint32_t i = 0; i + 1 < members; ++i) out.push_back({i, i + 1});
  return out;
}

}  // namespace

std::vector<Pair> flowsOf(Scheme pattern, std::uint32_t members) {
  std::vector<Pair> out;
  if (pattern == Scheme::kAlltoall) {
    for (std::uint32_t i = 0; i < members; ++i)
      for (std::uint32_t j = 0; j < members; ++j)
        if (i != j) out.push_back({i, j});
    return out;
  }
  out = chain(members);
  if (pattern != Scheme::kBroadcast) out.push_back({members - 1, 0});  // closes the ring
  return out;
}

Pieces piecesOf(Scheme pattern, std::uint32_t members) {
  switch (pattern) {
    case Scheme::kAlltoall:
      return {.cuts = members, .moved = 1};
    case Scheme::kAllgather:
      return {.cuts = members, .moved = members - 1};
    case Scheme::kAllreduceTraffic:
      return {.cuts = members, .moved = 2 * (members - 1)};
    default:
      return {};
  }
}

std::uint64_t pieceBytes(std::uint64_t size, std::uint32_t cuts) {
  const std::uint64_t piece = size / cuts;
  return cuts == 1 || piece < kAligned ? piece : piece / kAligned * kAligned;
}

OperationBytes operationBytes(const Layout& layout, const Workload& row) {
  std::vector<std::uint64_t> sent(layout.initiators), received(layout.targets);
  OperationBytes out{.size = row.block_bytes * piecesOf(layout.scheme, layout.initiators).cuts};
  for (const Pair& pair : pairsOf(layout)) {
    out.moved += row.bytes();
    sent[pair.initiator] += row.bytes();
    received[pair.target] += row.bytes();
  }
  out.busiest = std::max(*std::max_element(sent.begin(), sent.end()),
                         *std::max_element(received.begin(), received.end()));
  return out;
}

}  // namespace viaduct::measure
