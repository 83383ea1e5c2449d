#include <gtest/gtest.h>

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

TEST(CheckMemory, NamesHugePagesThatAreWantedAndNotThere) {
  NodeFolder folder;
  folder.variables["FI_EFA_USE_HUGE_PAGE"] = "1";
  EXPECT_TRUE(diagnose(folder.node()).has("memory.no-huge-pages"));
  folder.write("/proc/meminfo", "HugePages_Total: 2560\nHugePages_Free: 2560");
  EXPECT_FALSE(diagnose(folder.node()).has("memory.no-huge-pages"));
}

}  // namespace
}  // namespace viaduct::diag
