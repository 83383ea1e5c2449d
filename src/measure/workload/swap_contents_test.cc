#include "measure/workload/swap_contents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "support/text.h"

namespace viaduct::measure::swap {
namespace {

using testing::has;

constexpr std::uint32_t kBlocks = 40;
constexpr std::uint64_t kBytes = 1000;

PoolContents contents(Order order) {
  return {.seed = 3,
          .block_bytes = kBytes,
          .places = placesOf(order, kBlocks, 7),
          .epoch = 1,
          .guard_epoch = 2};
}

std::vector<std::byte> pool() { return std::vector<std::byte>(placesFor(kBlocks) * kBytes); }

TEST(Places, OfBothOrdersHaveGuardsAround) {
  for (const Order order : {Order::kContiguous, Order::kRandom}) {
    const Indices places = placesOf(order, kBlocks, 7);
    const std::set<std::uint32_t> used(places.begin(), places.end());
    EXPECT_EQ(used.size(), kBlocks);
    EXPECT_EQ(used.count(0), 0U) << "a guard before the first block";
    EXPECT_LT(*used.rbegin() + 1, placesFor(kBlocks)) << "a guard after the last block";
    std::uint32_t touching = 0;
    for (const std::uint32_t place : used)
      touching += static_cast<std::uint32_t>(used.count(place + 1));
    EXPECT_EQ(touching, order == Order::kRandom ? 0 : kBlocks - 3) << "three runs";
  }
  EXPECT_NE(placesOf(Order::kRandom, kBlocks, 7), placesOf(Order::kRandom, kBlocks, 8));
  EXPECT_FALSE(std::ranges::is_sorted(placesOf(Order::kRandom, kBlocks, 7)));
}

TEST(PoolContents, AreRightAfterTheyWereFilled) {
  for (const Order order : {Order::kContiguous, Order::kRandom}) {
    auto memory = pool();
    const PoolContents all = contents(order);
    ASSERT_TRUE(all.fill(memory));
    EXPECT_EQ(*all.verify(memory), std::nullopt);
    ASSERT_TRUE(all.fillAsGuards(memory));
    EXPECT_TRUE(has(all.verify(memory)->value_or(""), "block")) << "no block has arrived";
  }
}

TEST(PoolContents, FindAByteOutsideOfABlock) {
  for (const Order order : {Order::kContiguous, Order::kRandom}) {
    const PoolContents all = contents(order);
    for (const std::uint64_t at :
         {std::uint64_t{0}, all.places[5] * kBytes - 1, (all.places[15] + 1) * kBytes,
          placesFor(kBlocks) * kBytes - 1}) {
      auto memory = pool();
      ASSERT_TRUE(all.fill(memory));
      memory[at] ^= std::byte{1};
      // The neighbour of block 5 is block 4 if both are in a run.
      const Wrong wrong = *all.verify(memory);
      ASSERT_TRUE(wrong) << at;
      if (order == Order::kRandom) {
        EXPECT_TRUE(has(*wrong, "a copy wrote outside its blocks")) << *wrong;
      }
    }
  }
}

TEST(PoolContents, FindABlockInThePlaceOfAnother) {
  const PoolContents all = contents(Order::kRandom);
  auto memory = pool();
  ASSERT_TRUE(all.fill(memory));
  std::swap_ranges(memory.begin() + static_cast<std::ptrdiff_t>(all.places[3] * kBytes),
                   memory.begin() + static_cast<std::ptrdiff_t>((all.places[3] + 1) * kBytes),
                   memory.begin() + static_cast<std::ptrdiff_t>(all.places[8] * kBytes));
  EXPECT_TRUE(has(all.verify(memory)->value_or(""), "block")) << all.verify(memory)->value_or("");
  ASSERT_TRUE(all.fill(memory));
  std::copy_n(memory.begin(), kBytes,
              memory.begin() + static_cast<std::ptrdiff_t>(all.places[0] * kBytes));
  EXPECT_TRUE(has(all.verify(memory)->value_or(""), "block 0 at place")) << "the guard of place 0";
}

}  // namespace
}  // namespace viaduct::measure::swap
