// The places of blocks in a pool, and the guard blocks around them. Threads: plain values and pure
// functions.
#pragma once

#include <viaduct/blocks.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "measure/workload/contents.h"
#include "measure/workload/swap.h"

namespace viaduct::measure::swap {

// The number of blocks in a run, which touch each other in Order::kContiguous.
inline constexpr std::uint32_t kRun = 16;

// A pool has places for this many blocks. Each place without a block holds a guard block.
constexpr std::uint64_t placesFor(std::uint32_t blocks) { return 2 * std::uint64_t{blocks} + 1; }
// Returns the place of each block. A guard block lies before and after each block, or each run.
Indices placesOf(Order order, std::uint32_t blocks, std::uint64_t seed);

struct PoolContents {
  std::uint64_t seed = 1, block_bytes = 0;
  Indices places = {};            // of the blocks
  std::uint64_t epoch = 1;        // of the blocks
  std::uint64_t guard_epoch = 1;  // of the guards

  // If `gpu` is set, the pool is in this mirror.
  Status fill(std::span<std::byte> pool, const Mirror* gpu = nullptr) const;
  // Fills all places with guard blocks, including the places of blocks.
  Status fillAsGuards(std::span<std::byte> pool, const Mirror* gpu = nullptr) const;
  // Describes the first wrong bytes.
  Result<Wrong> verify(std::span<std::byte> pool, const Mirror* gpu = nullptr) const;

 private:
  Contents words() const;
  CellList cells(std::span<std::byte> pool, const Indices& blocks) const;
};

}  // namespace viaduct::measure::swap
