#include "measure/proof/memory_rate.h"

#include <gtest/gtest.h>

#include <chrono>

namespace viaduct::measure::proof {
namespace {

TEST(MemoryRates, AreMeasuredForSeveralSizes) {
  const auto start = std::chrono::steady_clock::now();
  const MemoryRates rates = measureMemoryRates();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_GT(rates.threads, 0U);
  ASSERT_EQ(rates.all_threads.size(), 5U);
  std::printf("%u threads, one alone %.1f GB/s, %.0f ms;", rates.threads, rates.one_thread_gb_per_s,
              took.count() * 1e3);
  std::uint64_t last = 0;
  for (const CopyRate& rate : rates.all_threads) {
    std::printf(" %llu KiB: %.1f", static_cast<unsigned long long>(rate.bytes >> 10U),
                rate.gb_per_s);
    EXPECT_GT(rate.bytes, last);
    EXPECT_GT(rate.gb_per_s, 0);
    last = rate.bytes;
  }
  std::printf("\n");
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
