#include "host/processors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/temporary_folder.h"

namespace viaduct::host {
namespace {

TEST(Processors, TimeInUseCountsAndIdleTimeDoesNot) {
  const testing::TemporaryFolder root;
  EXPECT_FALSE(processorUse(Tree(root.path())));
  root.write("/proc/stat",
             "cpu  100 10 20 5000 6000 3 7 60 70 80\n"
             "cpu0 50 5 10 2500 3000 1 3 30 35 40\n"
             "cpu1 50 5 10 2500 3000 2 4 30 35 40\n"
             "intr 1 2 3\n");
  const auto use = processorUse(Tree(root.path()));
  ASSERT_TRUE(use);
  EXPECT_DOUBLE_EQ(use->seconds, 200.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_DOUBLE_EQ(use->idle, 11000.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(use->count, 2U);
  root.write("/proc/stat", "cpu  100 10\n");
  EXPECT_FALSE(processorUse(Tree(root.path())));
}

TEST(Processors, TheFiguresAreThisMachines) {
  const auto before = processorUse();
  ASSERT_TRUE(before);
  EXPECT_GE(before->count, 1U);
  const auto used = [&] { return processorUse()->seconds - before->seconds; };
  while (used() < 0.02) {
  }
  EXPECT_GE(used(), 0.02);
}

TEST(Processors, OnlyWorkCountsAsOwnUse) {
  const double before = ownProcessorSeconds();
  ::usleep(50'000);
  EXPECT_LT(ownProcessorSeconds() - before, 0.05);
  while (ownProcessorSeconds() - before < 0.05) {
  }
}

}  // namespace
}  // namespace viaduct::host
