#include "backends/cuda/block_summer.h"

#include <algorithm>

#include "base/sizes.h"
#include "cuda/memory.h"

namespace viaduct::cuda {
namespace {

constexpr std::uint64_t kMostCopied = base::kMiB;  // at once

}  // namespace

Result<std::vector<base::BlockSums>> BlockSummer::sums(std::span<const core::BlockPiece> pieces) {
  const std::lock_guard lock(mutex_);
  std::vector<base::BlockSums> out;
  out.reserve(pieces.size());
  for (const core::BlockPiece& piece : pieces) {
    VIADUCT_TRY(const base::BlockSums sums, sumByHost(piece));
    out.push_back(sums);
  }
  return out;
}

// Without the kernel: copies the piece to host memory, part by part.
Result<base::BlockSums> BlockSummer::sumByHost(const core::BlockPiece& piece) {
  copy_.resize(kMostCopied);
  base::BlockSums out;
  for (std::uint64_t at = 0; at < piece.bytes;) {
    const auto part = std::span(copy_).first(std::min(piece.bytes - at, kMostCopied));
    VIADUCT_CHECK(copyToHost(*context_, part, piece.address + at));
    out += base::blockSums(piece.offset + at, part);
    at += part.size();
  }
  return out;
}

}  // namespace viaduct::cuda
