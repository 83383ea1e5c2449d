#include "measure/result/statistics.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

TEST(Statistics, MedianAndSpread) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(spread({}), 0);
  EXPECT_EQ(spread({10, 10, 10}), 0);
  EXPECT_DOUBLE_EQ(spread({8, 10, 12, 100, 10}), 0.2);
}

}  // namespace
}  // namespace viaduct::measure
