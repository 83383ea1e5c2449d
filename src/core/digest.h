// Makes a digest from the sums of a block. Threads: pure functions.
#pragma once

#include <viaduct/digest.h>

#include "base/block_sums.h"

namespace viaduct::core {

// Sums of all bytes of the block, from byte 0, and their number.
Digest digestFrom(const base::BlockSums& sums, std::uint64_t bytes);

}  // namespace viaduct::core
