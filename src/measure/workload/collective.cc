#include "measure/workload/collective.h"

#include <algorithm>

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kAligned = 16;

// Returns the pairs of member i and member i + 1, from the first member to the last.
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

std::vector<Pair> flowsOf(const TrafficMatrix& matrix) {
  std::vector<Pair> out;
  for (std::uint32_t at = 0; at < matrix.bytes.size(); ++at)
    if (matrix.bytes[at] != 0) out.push_back({at / matrix.members, at % matrix.members});
  return out;
}

std::uint64_t bytesOf(const Layout& layout, const Pair& pair) {
  if (layout.scheme != Scheme::kMatrix) return 0;
  const std::uint32_t from = layout.reads ? pair.target : pair.initiator;
  const std::uint32_t to = layout.reads ? pair.initiator : pair.target;
  return layout.matrix.bytes[from * layout.matrix.members + to];
}

Workload workOf(const Workload& row, const Stream& stream) {
  Workload out = row;
  if (stream.bytes != 0) out.block_bytes = stream.bytes;
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
  OperationBytes out;
  for (const Stream& stream : streamsOf(layout, 1, false)) {
    const std::uint64_t bytes = workOf(row, stream).bytes();
    out.moved += bytes;
    sent[stream.pair.initiator] += bytes;
    received[stream.pair.target] += bytes;
  }
  out.busiest = std::max(*std::max_element(sent.begin(), sent.end()),
                         *std::max_element(received.begin(), received.end()));
  const std::uint32_t cuts = piecesOf(layout.scheme, layout.initiators).cuts;
  out.size = layout.scheme == Scheme::kMatrix ? out.moved : row.block_bytes * cuts;
  return out;
}

}  // namespace viaduct::measure
