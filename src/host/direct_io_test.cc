#include "host/direct_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "support/loop_device.h"
#include "support/temporary_folder.h"

namespace viaduct::host {
namespace {

base::Fd opened(const std::string& path, int flags = 0) {
  return base::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
}

TEST(DirectIoTest, IsNothingForAFileInMemory) {
  const viaduct::testing::TemporaryFolder folder("/dev/shm");
  folder.write("/file", "x");
  const base::Fd file = opened(folder.path() + "/file");
  EXPECT_TRUE(isInMemory(file.get()));
  EXPECT_FALSE(directIo(file.get(), false).works);
}

// The file of a block device lies in devtmpfs, which is in memory.
TEST(DirectIoTest, WorksForABlockDevice) {
  const viaduct::testing::TemporaryFolder folder;
  folder.write("/disk", std::string(1U << 20U, 'x'));
  const viaduct::testing::LoopDevice device(folder.path() + "/disk");
  const base::Fd file = opened(device.name(), O_DIRECT);
  if (!file) GTEST_SKIP() << "skipped: no loop device";
  EXPECT_TRUE(isInMemory(file.get()));
  const DirectIo rules = directIo(file.get(), true);
  EXPECT_TRUE(rules.works);
  EXPECT_GE(rules.offset, 512U);
}

}  // namespace
}  // namespace viaduct::host
