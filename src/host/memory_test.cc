#include "host/memory.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace viaduct::host {
namespace {

class AvailableMemory : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) { folder_.write(file, text); }
  testing::TemporaryFolder folder_;
  const std::string root_ = folder_.path();
};

TEST_F(AvailableMemory, IsTheKernelsFigure) {
  EXPECT_EQ(availableMemory(Tree(root_)), 0U);
  write("/proc/meminfo", "MemTotal:  16000 kB\nMemFree: 1 kB\nMemAvailable:   8000 kB\n");
  EXPECT_EQ(availableMemory(Tree(root_)), 8000U * 1024);
}

TEST_F(AvailableMemory, IsLessInACgroupWithALimit) {
  write("/proc/meminfo", "MemAvailable:   8000 kB\n");
  write("/proc/self/cgroup", "0::/pod\n");
  write("/sys/fs/cgroup/pod/memory.max", "max\n");
  write("/sys/fs/cgroup/pod/memory.current", "1000\n");
  EXPECT_EQ(availableMemory(Tree(root_)), 8000U * 1024);
  write("/sys/fs/cgroup/pod/memory.max", "5000\n");
  EXPECT_EQ(availableMemory(Tree(root_)), 4000U);
}

// A job that reads weights from files fills its cgroup with page cache, but still has room.
TEST_F(AvailableMemory, CountsPageCacheOfTheCgroupAsAvailable) {
  write("/proc/meminfo", "MemAvailable:   8000 kB\n");
  write("/proc/self/cgroup", "0::/pod\n");
  write("/sys/fs/cgroup/pod/memory.max", "5000\n");
  write("/sys/fs/cgroup/pod/memory.current", "5000\n");
  write("/sys/fs/cgroup/pod/memory.stat", "anon 1000\ninactive_file 2500\nactive_file 500\n");
  EXPECT_EQ(availableMemory(Tree(root_)), 3000U);
}

TEST_F(AvailableMemory, IsBoundedByACgroupAboveItsOwn) {
  write("/proc/self/cgroup", "0::/slice/pod/container\n");
  write("/sys/fs/cgroup/slice/pod/container/memory.max", "max\n");
  write("/sys/fs/cgroup/slice/pod/memory.max", "7000\n");
  write("/sys/fs/cgroup/slice/pod/memory.current", "1000\n");
  EXPECT_EQ(availableMemory(Tree(root_)), 6000U);
}

TEST_F(AvailableMemory, LeavesSwapToItsOwnFigure) {
  EXPECT_EQ(freeSwap(Tree(root_)), 0U);
  write("/proc/meminfo", "MemAvailable:   8000 kB\nSwapFree: 3 kB\n");
  EXPECT_EQ(availableMemory(Tree(root_)), 8000U * 1024);
  EXPECT_EQ(freeSwap(Tree(root_)), 3U * 1024);
}

TEST_F(AvailableMemory, KnowsTheOlderCgroups) {
  write("/proc/meminfo", "MemAvailable:   8000 kB\n");
  write("/proc/self/cgroup", "5:devices:/\n4:memory:/pod\n0::/\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "700\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "200\n");
  EXPECT_EQ(availableMemory(Tree(root_)), 500U);
}

TEST(LargestCache, IsTheLargestThatTheFirstProcessorHas) {
  const testing::TemporaryFolder root;
  EXPECT_EQ(largestCache(Tree(root.path())), 0U);
  root.write("/sys/devices/system/cpu/cpu0/cache/index0/size", "64K\n");
  root.write("/sys/devices/system/cpu/cpu0/cache/index3/size", "116736K\n");
  root.write("/sys/devices/system/cpu/cpu0/cache/uevent", "");
  EXPECT_EQ(largestCache(Tree(root.path())), 114U << 20U);
}

}  // namespace
}  // namespace viaduct::host
