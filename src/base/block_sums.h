// The sums from which a block's digest is made (docs/design/0037-digests-of-blocks.md). Threads:
// any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/stripe.h"

namespace viaduct::base {

// Word i of stripe s, combined with key i by exclusive or, is x. `plain` is the sum of x, and
// `product` the sum of its upper half times its lower half. Each has the weight 2s + 1. The sums of
// pieces of a block add up to those of the block.
struct BlockSums {
  std::uint64_t plain = 0, product = 0;
  BlockSums& operator+=(const BlockSums& other) {
    plain += other.plain;
    product += other.product;
    return *this;
  }
  friend bool operator==(const BlockSums&, const BlockSums&) = default;
};

// The sums of bytes at `offset` of their block, a multiple of 8. An incomplete last word ends with
// zeros.
BlockSums blockSums(std::uint64_t offset, std::span<const std::byte> bytes);

// The sums of whole stripes. `even` has no weights. `falling` counts each stripe as often as there
// are stripes from that stripe to the end.
struct StripeSums {
  BlockSums even = {}, falling = {};
  friend bool operator==(const StripeSums&, const StripeSums&) = default;
};
struct StripeSummer {
  const char* name;
  StripeSums (*sum)(const std::byte* from, std::size_t stripes);
};
// The implementations that this processor can run, the fastest one first. blockSums() uses the
// fastest.
std::span<const StripeSummer> stripeSummers();

}  // namespace viaduct::base
