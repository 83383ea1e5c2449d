#include "measure/workload/swap_contents.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"

namespace viaduct::measure::swap {
namespace {

constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};

}  // namespace

Indices placesOf(Order order, std::uint32_t blocks, std::uint64_t seed) {
  Indices out(blocks);
  if (order == Order::kContiguous) {
    for (std::uint32_t i = 0; i < blocks; ++i) out[i] = 1 + i + i / kRun;
    return out;
  }
  std::iota(out.begin(), out.end(), 0U);
  base::Random random(seed);
  for (std::uint32_t i = blocks; i > 1; --i)
    std::swap(out[i - 1], out[static_cast<std::uint32_t>(random.next() % i)]);
  for (std::uint32_t& place : out) place = 2 * place + 1;
  return out;
}

Contents PoolContents::words() const {
  return Contents({.seed = seed,
                   .block_bytes = block_bytes,
                   .blocks = placesFor(static_cast<std::uint32_t>(places.size()))});
}

// Lists all places of the pool as cells. The places in `blocks` hold blocks, and all others hold
// guard blocks.
CellList PoolContents::cells(std::span<std::byte> pool, const Indices& blocks) const {
  std::vector<std::uint32_t> block_at(placesFor(static_cast<std::uint32_t>(places.size())),
                                      kNoBlock);
  for (std::uint32_t i = 0; i < blocks.size(); ++i) block_at[blocks[i]] = i;
  return [this, pool, block_at = std::move(block_at)](const CellVisit& visit) -> Wrong {
    for (std::uint64_t place = 0; place < block_at.size(); ++place) {
      const std::uint32_t block = block_at[place];
      const bool guard = block == kNoBlock;
      if (const auto wrong = visit({.memory = pool.subspan(place * block_bytes, block_bytes),
                                    .number = guard ? place : block,
                                    .epoch = guard ? guard_epoch : epoch}))
        return wrong->named(
            guard ? fmt::format("a copy wrote outside its blocks: guard block {}", place)
                  : fmt::format("block {} at place {}", block, place));
    }
    return std::nullopt;
  };
}

Status PoolContents::fill(std::span<std::byte> pool, const Mirror* gpu) const {
  return words().fill(cells(pool, places), gpu);
}

Status PoolContents::fillAsGuards(std::span<std::byte> pool, const Mirror* gpu) const {
  return words().fill(cells(pool, {}), gpu);
}

Result<Wrong> PoolContents::verify(std::span<std::byte> pool, const Mirror* gpu) const {
  return words().verify(cells(pool, places), Verified::kFull, gpu);
}

}  // namespace viaduct::measure::swap
