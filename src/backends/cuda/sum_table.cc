#include "backends/cuda/sum_table.h"

#include <algorithm>
#include <numeric>

#include "base/sizes.h"
#include "base/stripe.h"

namespace viaduct::cuda {
namespace {

// A smaller row would cost the host more time than it saves on the GPU. All kernels count the bytes
// of a row in 32 bits.
constexpr std::uint64_t kLeastOfRow = 16 * base::kKiB, kMostOfRow = base::kMiB;
// A row has at most about half of a warp's share, so that warps which take the rows in turn end
// together.
constexpr std::uint64_t kRowsOfWarp = 2;

}  // namespace

std::uint64_t mostBytesOfSumRow(std::uint64_t bytes, std::uint32_t warps) {
  const std::uint64_t share = bytes / (std::max<std::uint64_t>(warps, 1) * kRowsOfWarp);
  return std::clamp(share, kLeastOfRow, kMostOfRow) / base::kStripeBytes * base::kStripeBytes;
}

std::uint64_t bytesOf(std::span<const core::BlockPiece> pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& piece) { return sum + piece.bytes; });
}

std::uint32_t cutSums(std::span<const core::BlockPiece> pieces, std::uint64_t most, SumRow* rows) {
  SumRow* next = rows;
  for (std::uint32_t number = 0; number < pieces.size(); ++number) {
    core::BlockPiece left = pieces[number];
    while (left.bytes != 0) {
      // Takes the bytes up to the end of a stripe, then whole stripes, then the rest.
      std::uint64_t bytes = std::min(left.bytes, most);
      if (const std::uint64_t into = left.offset % base::kStripeBytes; into != 0)
        bytes = std::min(left.bytes, base::kStripeBytes - into);
      else if (bytes > base::kStripeBytes)
        bytes -= bytes % base::kStripeBytes;
      *next++ = {left.address, left.offset, static_cast<std::uint32_t>(bytes), number};
      left.address += bytes;
      left.offset += bytes;
      left.bytes -= bytes;
    }
  }
  return static_cast<std::uint32_t>(next - rows);
}

}  // namespace viaduct::cuda
