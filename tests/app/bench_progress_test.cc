// The progress line of commands that measure.
#include "viaduct/bench_progress.h"

#include <gtest/gtest.h>

namespace viaduct::app {
namespace {

const std::string kText = "[3/12] tcp write 64 x 64 KiB, 12.3 GB/s so far, about 5 s left";

TEST(ProgressLine, HasABarIfThereIsRoom) {
  EXPECT_EQ(progressLine(2, 4, kText, 80), "#####..... " + kText);
  EXPECT_EQ(progressLine(0, 0, "a", 80), ".......... a") << "no rows";
  EXPECT_EQ(progressLine(2, 4, kText, kText.size() + 11), kText) << "one column stays free";
}

TEST(ProgressLine, NeverFillsANarrowTerminal) {
  EXPECT_EQ(progressLine(2, 12, kText, 40), "[3/12] tcp write 64 x 64 KiB, 12.3 G...");
  for (std::size_t width = 20; width < 100; ++width)
    EXPECT_LT(progressLine(2, 12, kText, width).size(), width);
}

}  // namespace
}  // namespace viaduct::app
