#include "measure/load/workload.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace viaduct::measure {
namespace {

TEST(Workloads, TheUsualSweepIsEverySizeOnEveryBackend) {
  const auto all = workloads({});
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 16U);
  EXPECT_EQ(all->front().backend, "local");
  EXPECT_EQ(all->front().block_bytes, 4096U);
  EXPECT_EQ(all->front().batch, 64U);
  EXPECT_EQ(all->back().backend, "tcp");
  EXPECT_EQ(all->back().block_bytes, 64U << 20U);
  EXPECT_EQ(all->back().batch, 1U);
}

TEST(Workloads, RefusesWhatCannotBeMeasured) {
  EXPECT_FALSE(workloads({.backends = {}}));
  EXPECT_FALSE(workloads({.backends = {"tcp", "tcp"}}));
  EXPECT_FALSE(workloads({.block_sizes = {0}}));
  EXPECT_FALSE(workloads({.block_sizes = {4096, 1, 4096}}));
  EXPECT_FALSE(workloads({.block_sizes = {1ULL << 36U}, .batch = 2}));
  EXPECT_FALSE(workloads({.batch = (1U << 24U) + 1}));
  EXPECT_TRUE(workloads({.block_sizes = {1ULL << 36U}, .batch = 1}));
}

TEST(Workloads, PassTheWireAndNothingElseDoes) {
  const Workload sent{"tcp", OpKind::kRead, 12345, 7, 99, MemoryChoice::kMalloc, 3};
  base::Writer writer;
  encode(writer, sent);
  const auto bytes = writer.take();
  base::Reader reader(bytes);
  const auto got = decodeWorkload(reader);
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(*got, sent);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    base::Reader part(std::span<const std::byte>(bytes).first(length));
    EXPECT_FALSE(decodeWorkload(part)) << length;
  }
}

TEST(Workloads, OrdersArePermutationsThatDiffer) {
  const Workload w{.backend = "tcp", .block_bytes = 1, .batch = 100};
  auto mine = blockOrder(w, Role::kInitiator);
  auto theirs = blockOrder(w, Role::kTarget);
  EXPECT_NE(mine, theirs);
  EXPECT_EQ(mine, blockOrder(w, Role::kInitiator));
  for (auto* order : {&mine, &theirs}) {
    std::sort(order->begin(), order->end());
    for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ((*order)[i], i);
  }
}

}  // namespace
}  // namespace viaduct::measure
