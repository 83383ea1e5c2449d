// The traffic of collectives between members that all send and receive: how many bytes each member
// sends to each other member in one operation. Sizes are counted as in nccl-tests. Threads: plain
// values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/workload/layout.h"
#include "measure/workload/workload.h"

namespace viaduct::measure {

// Returns the pairs of a sender and a receiver.
std::vector<Pair> flowsOf(Scheme pattern, std::uint32_t members);
std::vector<Pair> flowsOf(const TrafficMatrix& matrix);
// Returns how many bytes the layout's matrix has for this pair of initiator and target, or 0 if the
// layout has no matrix.
std::uint64_t bytesOf(const Layout& layout, const Pair& pair);

// How an operation's data is cut: `cuts` equal pieces make up its size, and each sender moves
// `moved` such pieces to its receiver.
struct Pieces {
  std::uint32_t cuts = 1, moved = 1;
};
Pieces piecesOf(Scheme pattern, std::uint32_t members);
// Returns the bytes of a piece, or 0 if `size` is too small. Cut pieces of 16 bytes or more are
// multiples of 16 bytes, as in NCCL.
std::uint64_t pieceBytes(std::uint64_t size, std::uint32_t cuts);

// Returns the row with the size that this stream moves, because a matrix has a size for each pair.
Workload workOf(const Workload& row, const Stream& stream);

// The bytes of one operation, which is one transfer of each stream.
struct OperationBytes {
  std::uint64_t size = 0;     // as nccl-tests counts it; for a matrix: all bytes
  std::uint64_t moved = 0;    // the bytes of all members together
  std::uint64_t busiest = 0;  // the bytes that the busiest member sends or receives
};
OperationBytes operationBytes(const Layout& layout, const Workload& row);

}  // namespace viaduct::measure
