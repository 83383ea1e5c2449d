// Makes lists of blocks without the checks of the factories of Blocks. Threads: pure functions.
#pragma once

#include <viaduct/blocks.h>

#include <cstdint>
#include <span>
#include <vector>

namespace viaduct::core {

// The caller knows that no block is empty, overlaps another one or ends beyond 2^63, that there are
// at most 2^32 blocks, and that strides are at least the size of a block. Finding overlaps costs
// ten times as much as the rest of the list.
struct DisjointBlocks {
  static Blocks of(std::vector<Run> runs);
  // Whether the blocks of one run are not empty, share no byte and end within 2^63.
  static bool valid(const Run& run);
  // Whether blocks of one size at these addresses, in any order, share no byte. No block may end
  // beyond 2^63.
  static bool areApart(std::span<const std::uint64_t> addresses, std::uint64_t bytes);
  // `addresses` has at least one element. With origins, the addresses repeat relative to each
  // origin.
  static Blocks at(std::vector<std::uint64_t> addresses, std::uint64_t bytes,
                   std::vector<std::uint64_t> origins = {});

  // Block i of a list that at() made with origins is at origins[i / n] + addresses[i % n], with n
  // addresses. For other lists both spans are empty.
  struct Repeated {
    std::span<const std::uint64_t> addresses, origins;
  };
  static Repeated repeated(const Blocks& blocks) {
    if (blocks.table_ == nullptr || blocks.table_->origins.empty()) return {};
    return {blocks.table_->addresses, blocks.table_->origins};
  }
};

}  // namespace viaduct::core
