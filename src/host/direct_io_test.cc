#include "host/direct_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/fd.h"
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

// A block device on a file, until the object dies.
class LoopDevice {
 public:
  explicit LoopDevice(const std::string& file) {
    FILE* const out = ::popen(("losetup --find --show " + file + " 2>/dev/null").c_str(), "r");
    std::array<char, 64> line{};
    if (std::fgets(line.data(), line.size(), out) != nullptr)
      name_ = std::string(line.data()).substr(0, std::string(line.data()).find('\n'));
    ::pclose(out);
  }
  ~LoopDevice() {
    if (!name_.empty()) static_cast<void>(!std::system(("losetup --detach " + name_).c_str()));
  }
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// Its name is a file of devtmpfs.
TEST(DirectIoTest, WorksForABlockDevice) {
  const viaduct::testing::TemporaryFolder folder;
  folder.write("/disk", std::string(1U << 20U, 'x'));
  const LoopDevice device(folder.path() + "/disk");
  const base::Fd file = opened(device.name(), O_DIRECT);
  if (!file) GTEST_SKIP() << "skipped: no loop device";
  EXPECT_TRUE(isInMemory(file.get()));
  const DirectIo rules = directIo(file.get(), true);
  EXPECT_TRUE(rules.works);
  EXPECT_GE(rules.offset, 512U);
}

}  // namespace
}  // namespace viaduct::host
