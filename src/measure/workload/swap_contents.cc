#include "measure/workload/swap_contents.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"
#include "measure/workload/pattern.h"

namespace viaduct::measure::swap {
namespace {

constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};

// Visits each place with the number of its block, or kNoBlock.
template <class Visit>
void eachPlace(const Indices& places, Visit visit) {
  std::vector<std::uint32_t> blocks(placesFor(static_cast<std::uint32_t>(places.size())), kNoBlock);
  for (std::uint32_t i = 0; i < places.size(); ++i) blocks[places[i]] = i;
  for (std::uint64_t place = 0; place < blocks.size(); ++place)
    if (!visit(place, blocks[place])) return;
}

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

void Contents::fill(std::span<std::byte> pool) const {
  const std::uint64_t all = placesFor(static_cast<std::uint32_t>(places.size()));
  const Pattern blocks{seed, block_bytes, all, epoch}, guards{seed, block_bytes, all, guard_epoch};
  eachPlace(places, [&](std::uint64_t place, std::uint32_t block) {
    const auto memory = pool.subspan(place * block_bytes, block_bytes);
    if (block == kNoBlock)
      guards.fill(memory, place);
    else
      blocks.fill(memory, block);
    return true;
  });
}

void Contents::fillAsGuards(std::span<std::byte> pool) const {
  const std::uint64_t all = placesFor(static_cast<std::uint32_t>(places.size()));
  const Pattern guards{seed, block_bytes, all, guard_epoch};
  for (std::uint64_t place = 0; place < all; ++place)
    guards.fill(pool.subspan(place * block_bytes, block_bytes), place);
}

std::optional<std::string> Contents::check(std::span<const std::byte> pool) const {
  const std::uint64_t all = placesFor(static_cast<std::uint32_t>(places.size()));
  const Pattern blocks{seed, block_bytes, all, epoch}, guards{seed, block_bytes, all, guard_epoch};
  std::optional<std::string> found;
  eachPlace(places, [&](std::uint64_t place, std::uint32_t block) {
    const auto memory = pool.subspan(place * block_bytes, block_bytes);
    const auto wrong =
        block == kNoBlock ? guards.verify(memory, place) : blocks.verify(memory, block);
    if (!wrong) return true;
    found = block == kNoBlock ? fmt::format(
                                    "a copy wrote outside its blocks: guard block {} is wrong from "
                                    "offset {}: {}",
                                    place, wrong->offset, wrong->text)
                              : fmt::format("block {} at place {} is wrong from offset {}: {}",
                                            block, place, wrong->offset, wrong->text);
    return false;
  });
  return found;
}

}  // namespace viaduct::measure::swap
