// The stripes of a block, from which its digest is made, for the host and for kernels of a GPU:
// docs/design/0037-digests-of-blocks.md. Threads: pure function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/splitmix.h"

namespace viaduct::base {

// A block is a sequence of stripes, and each stripe 64 words of 8 bytes. All stripes have the same
// keys. One warp of a GPU reads a stripe at once, 16 bytes in each of its lanes.
inline constexpr std::size_t kStripeWords = 64;
inline constexpr std::size_t kStripeBytes = kStripeWords * sizeof(std::uint64_t);

// The key of word `word` of each stripe. Arbitrary, but fixed for ever, because digests travel
// between versions and processors.
constexpr std::uint64_t stripeKey(std::uint64_t word) {
  return splitmix(0x76696164756374U + (word + 1) * kSplitmixStep);
}

}  // namespace viaduct::base
