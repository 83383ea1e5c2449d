#include "measure/workload/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace viaduct::measure {
namespace {

TEST(Workloads, AnImpossibleWorkloadIsNamed) {
  const std::pair<Workload, const char*> cases[] = {
      {{.block_bytes = 0}, "the block size is 0"},
      {{.block_bytes = 4096, .batch = 0}, "a batch of 0 blocks"},
      {{.block_bytes = std::uint64_t{1} << 40U}, "1 blocks of 1 TiB"},
      {{.block_bytes = std::uint64_t{64} << 30U, .batch = 2}, "at most 64 GiB"},
  };
  for (const auto& [workload, words] : cases) {
    const auto checked = check(workload);
    ASSERT_FALSE(checked) << words;
    EXPECT_NE(checked.error().text().find(words), std::string::npos) << checked.error().text();
  }
  EXPECT_TRUE(check({.block_bytes = 1}));
}

TEST(Workloads, DefaultTransfersHaveAtMost64Mebibytes) {
  const auto sizes = usualBlockSizes();
  EXPECT_EQ(sizes.front(), 4096U);
  EXPECT_EQ(sizes.back(), std::uint64_t{64} << 20U);
  EXPECT_EQ(usualBatch(4096), 64U);
  EXPECT_EQ(usualBatch(std::uint64_t{16} << 20U), 4U);
  EXPECT_EQ(usualBatch(std::uint64_t{1} << 30U), 1U);
}

TEST(BlockOrder, IsAPermutationOfItsOwnOnEachSide) {
  const auto here = blockOrder(100, 7, Role::kInitiator), there = blockOrder(100, 7, Role::kTarget);
  EXPECT_NE(here, there);
  EXPECT_EQ(here, blockOrder(100, 7, Role::kInitiator));
  EXPECT_NE(here, blockOrder(100, 8, Role::kInitiator));
  std::vector<std::uint32_t> sorted = here, all(100);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(sorted, all);
}

}  // namespace
}  // namespace viaduct::measure
