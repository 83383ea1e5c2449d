#include "measure/proof/memory_rate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "base/sizes.h"

namespace viaduct::measure::proof {
namespace {

void expectAscending(const MemoryRates& rates) {
  std::uint64_t last = 0;
  for (const CopyRate& rate : rates.all_threads) {
    EXPECT_GT(rate.bytes, last);
    EXPECT_GT(rate.gb_per_s, 0);
    last = rate.bytes;
  }
}

TEST(MemoryRates, AreMeasuredForSeveralSizes) {
  const MemoryRates rates = measureMemoryRates(0);
  ASSERT_GT(rates.threads, 0U);
  ASSERT_EQ(rates.all_threads.size(), 5U);
  expectAscending(rates);
}

// If no size fits the working set, a row that no cache holds gets a cache's rate as its ceiling.
TEST(MemoryRates, FitTheWorkingSet) {
  const MemoryRates small = measureMemoryRates(1);
  const std::uint64_t usual = small.all_threads.back().bytes,
                      set = std::min(2 * usual, kLargestCopied);
  if (set <= usual) GTEST_SKIP() << "skipped: the usual sizes are larger than any cache";
  const MemoryRates large = measureMemoryRates(set);
  ASSERT_EQ(large.all_threads.size(), 6U);
  expectAscending(large);
  EXPECT_GT(large.all_threads.back().bytes + large.threads * base::kMiB, set);
}

TEST(MemoryRates, AreMeasuredAgainForALargerSetOnly) {
  const MemoryRates first = memoryRates(1);
  EXPECT_EQ(memoryRates(1), first);
  EXPECT_EQ(memoryRates(0), first);
  const MemoryRates larger = memoryRates(2 * first.all_threads.back().bytes);
  EXPECT_NE(larger, first);
  EXPECT_EQ(memoryRates(1), larger);
}

TEST(CopyCeiling, IsThatOfTheNextSmallerSize) {
  const std::vector<CopyRate> rates{{1000, 60}, {10'000, 30}, {100'000, 10}};
  EXPECT_EQ(copyCeiling(rates, 1), 60);
  EXPECT_EQ(copyCeiling(rates, 9'999), 60);
  EXPECT_EQ(copyCeiling(rates, 10'000), 30);
  EXPECT_EQ(copyCeiling(rates, 1'000'000), 10);
  EXPECT_EQ(copyCeiling({}, 1), 0);
}

}  // namespace
}  // namespace viaduct::measure::proof
