// Makes a digest from the sums of a block. Threads: pure functions.
#pragma once

#include <viaduct/digest.h>

#include "base/block_sums.h"
#include "base/random.h"

namespace viaduct::core {

// `sums` are those of all bytes of the block, from byte 0; `bytes` is their number. The steps of
// Random are one-to-one, so different sums of blocks of one size give different digests.
inline Digest digestFrom(const base::BlockSums& sums, std::uint64_t bytes) {
  const std::uint64_t low = base::Random(sums.plain + bytes).next();
  return {low, base::Random(sums.product ^ low).next()};
}

}  // namespace viaduct::core
