// A slow clock makes all results look faster; the benchmark has to detect it.
#include "lies/lies_testing.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

TEST(SlowClock, IsCaught) {
  if (!kPreloads) GTEST_SKIP() << "skipped: no preloading under a sanitizer";
  const std::string out = benchWith(kLieSlowClock, {}, {"--duration", "100ms"});
  EXPECT_EQ(count(out, "INVALID: the clock of rank"), 1U) << out;
  EXPECT_EQ(count(out, "behind the kernel's raw clock"), 1U) << out;
}

TEST(SlowClock, IsCaughtByTheTicksOfTheKernelIfBothClocksAreSlow) {
  if (!kPreloads) GTEST_SKIP() << "skipped: no preloading under a sanitizer";
  const std::string out = benchWith(kLieSlowClock, {"LIE_BOTH_CLOCKS=1"}, {"--duration", "400ms"});
  EXPECT_EQ(count(out, "INVALID: the clocks of rank"), 1U) << out;
  EXPECT_EQ(count(out, "of each processor"), 1U) << out;
}

}  // namespace
}  // namespace viaduct::testing
