// The estimate of the progress line of `viaduct bench`.
#include "viaduct/time_left.h"

#include <gtest/gtest.h>

namespace viaduct::app {
namespace {

using namespace std::chrono_literals;

TEST(TimeLeft, IsUnknownDuringTheFirstRow) {
  TimeLeft left;
  const Clock::time_point start{1h};
  left.start(0, start);
  EXPECT_FALSE(left.at(start + 20s, 3));
}

TEST(TimeLeft, OfALongRowNeverGrows) {
  TimeLeft left;
  const Clock::time_point start{1h};
  left.start(0, start);
  left.start(1, start + 6s);
  EXPECT_EQ(left.at(start + 6s, 2), 6s);
  EXPECT_EQ(left.at(start + 8s, 2), 4s);
  EXPECT_EQ(left.at(start + 21s, 2), 1s) << "the row takes longer than the mean";
}

TEST(TimeLeft, IsTheMeanOfTheFinishedRowsForEachRowThatIsLeft) {
  TimeLeft left;
  const Clock::time_point start{1h};
  left.start(0, start);
  left.start(1, start + 2s);
  left.start(2, start + 6s);
  EXPECT_EQ(left.at(start + 6s, 4), 6s);
  EXPECT_EQ(left.at(start + 30s, 4), 3s) << "the row that follows is still to come";
}

}  // namespace
}  // namespace viaduct::app
