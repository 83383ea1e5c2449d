#include "base/budget.h"

#include <gtest/gtest.h>

namespace viaduct::base {
namespace {

TEST(Budget, IsLimitedByItselfAndByTheWhole) {
  Budget all(100);
  Budget one(60, &all), other(60, &all);
  EXPECT_TRUE(one.take(60));
  EXPECT_FALSE(one.take(1));
  EXPECT_EQ(other.left(), 40U);
  EXPECT_FALSE(other.take(41));
  EXPECT_EQ(all.used(), 60U) << "what was refused was not taken";
  one.give(10);
  EXPECT_TRUE(other.take(50));
}

TEST(Budget, GivesAllBackWhenItEnds) {
  Budget all(100);
  {
    Budget one(60, &all);
    EXPECT_TRUE(one.take(60));
  }
  EXPECT_EQ(all.left(), 100U);
}

TEST(Budget, SaysTheLimitsAndWhatFits) {
  Budget all(100);
  Budget one(60, &all);
  EXPECT_TRUE(one.take(50));
  EXPECT_EQ(one.refusal("publish", 30, "one member", "all members").text(),
            "publish: exhausted: 30 bytes do not fit: 10 are left of the 60 for one member and the "
            "100 for all members");
}

}  // namespace
}  // namespace viaduct::base
