#include <gtest/gtest.h>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/node_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using testing::NodeFolder;

TEST(CheckMemory, NamesASharedMemoryThatIsTooSmall) {
  NodeFolder folder;
  EXPECT_EQ(diagnose(folder.node()).worst(), Severity::kInfo);
  folder.live.shm_bytes = 64U << 20U;
  EXPECT_TRUE(diagnose(folder.node()).has("memory.shm-small"));
  folder.live.shm_bytes.reset();
  EXPECT_TRUE(diagnose(folder.node()).has("memory.shm-unknown"));
}

TEST(CheckMemory, TakesTheHalfOfASmallMachineForEnough) {
  auto folder = testing::smallVm();
  folder.live.shm_bytes = 512U << 20U;
  EXPECT_EQ(testing::codesAboveInfo(folder), std::vector<std::string>{});
  auto pod = testing::p5();
  pod.live.shm_bytes = 64U << 20U;
  EXPECT_EQ(testing::codesAboveInfo(pod), std::vector<std::string>{"memory.shm-small"});
}

TEST(CheckMemory, NamesHugePagesThatThePodDidNotAskFor) {
  auto folder = testing::p5();
  folder.variables["FI_EFA_USE_HUGE_PAGE"] = "1";
  EXPECT_EQ(testing::codesAboveInfo(folder), std::vector<std::string>{"memory.no-huge-pages"});
  folder.write("/proc/meminfo", "HugePages_Total: 2560\nHugePages_Free: 2560");
  EXPECT_EQ(testing::codesAboveInfo(folder), std::vector<std::string>{});
  folder.write("/sys/fs/cgroup/hugetlb.2MB.max", "0");
  EXPECT_EQ(testing::codesAboveInfo(folder), std::vector<std::string>{"memory.no-huge-pages"});
  folder.write("/proc/meminfo", "HugePages_Total: many");
  EXPECT_EQ(testing::codesAboveInfo(folder), std::vector<std::string>{"memory.huge-pages-unknown"});
}

}  // namespace
}  // namespace viaduct::diag
