// Memory that poses as a disk: the process reads a block device, and no disk has to answer.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lies/lies_testing.h"
#include "support/loop_device.h"

namespace viaduct::testing {
namespace {

class MemoryAsDisk : public ::testing::Test {
 protected:
  // The program's output for reads of a loop device over a new file in that folder. Empty: there
  // are no loop devices.
  static std::string readsOver(const std::string& folder) {
    const std::string file = folder + "/viaduct_disk_" + std::to_string(::getpid());
    std::ofstream(file) << std::string(std::size_t{8} << 20U, 'x');
    const LoopDevice disk(file);
    std::filesystem::remove(file);
    if (disk.name().empty()) return {};
    Program program({"bench", "--backend", "file", "--filenames", disk.name(), "--op", "read",
                     "--storage-enable-direct", "--block-sizes", "64K", "--batch", "16",
                     "--iterations", "400"});
    EXPECT_EQ(program.finish(), 0) << program.err();
    const std::string out = flat(program.out() + program.err());
    EXPECT_EQ(count(out, ", proven"), 0U) << out;
    return out;
  }
};

TEST_F(MemoryAsDisk, IsNamed) {
  const std::string out = readsOver("/dev/shm");
  if (out.empty()) GTEST_SKIP() << "skipped: no loop devices";
  EXPECT_GE(count(out, "the file of rank 0 is in memory (loop"), 1U) << out;
  EXPECT_GE(count(out, "over tmpfs"), 1U) << out;
}

TEST_F(MemoryAsDisk, IsNamedUnderAFileInThePageCache) {
  const std::string out = readsOver(::testing::TempDir());
  if (out.empty()) GTEST_SKIP() << "skipped: no loop devices";
  EXPECT_GE(count(out, "memory above it answered") + count(out, "is in memory") +
                count(out, "no block device is known"),
            1U)
      << out;
}

}  // namespace
}  // namespace viaduct::testing
