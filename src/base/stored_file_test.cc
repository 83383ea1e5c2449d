#include "base/stored_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "support/loop_device.h"
#include "support/temporary_folder.h"

namespace viaduct::base {
namespace {

using viaduct::testing::LoopDevice;
using viaduct::testing::TemporaryFolder;

Fd openToRead(const std::string& path) { return openStored(path, false); }

std::string errorOf(const std::string& path) {
  const auto found = storedFile("open", openToRead(path).get(), path);
  return found ? "described" : found.error().text();
}

TEST(StoredFile, DescribesARegularFile) {
  const TemporaryFolder folder;
  folder.write("/file", "12345");
  folder.write("/other", "");
  const std::string path = folder.path() + "/file";
  const Fd fd = openToRead(path);
  const auto found = storedFile("open", fd.get(), path);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_FALSE(found->is_device);
  EXPECT_EQ(found->bytes, 5U);
  const auto again = storedFile("open", openToRead(path).get(), path);
  const auto other = storedFile("open", openToRead(folder.path() + "/other").get(), "other");
  EXPECT_EQ(found->inode, again->inode);
  EXPECT_NE(found->inode, other->inode);
  EXPECT_EQ(other->bytes, 0U);
}

TEST(StoredFile, DescribesABlockDevice) {
  const TemporaryFolder folder;
  folder.write("/disk", std::string(1U << 20U, 'x'));
  const LoopDevice device(folder.path() + "/disk");
  const Fd fd = openToRead(device.name());
  if (!fd) GTEST_SKIP() << "skipped: no loop device";
  const auto found = storedFile("open", fd.get(), device.name());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_TRUE(found->is_device);
  EXPECT_EQ(found->bytes, 1U << 20U);
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_CUR), 0) << "the offset of the descriptor has changed";
}

TEST(StoredFile, OpensNoDeviceInUseForWriting) {
  const TemporaryFolder folder;
  folder.write("/disk", std::string(1U << 20U, 'x'));
  const LoopDevice device(folder.path() + "/disk");
  Fd user = openStored(device.name(), true);
  if (!user) GTEST_SKIP() << "skipped: no loop device";
  EXPECT_FALSE(openStored(device.name(), true));
  EXPECT_EQ(errno, EBUSY);
  EXPECT_TRUE(openStored(device.name(), false));
  user.reset();
  EXPECT_TRUE(openStored(device.name(), true));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(openStored(folder.path() + "/disk", true)) << "a file";
}

TEST(StoredFile, RefusesOtherFilesByTheirKind) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(errorOf(folder.path()), "open: invalid: it is a folder; file " + folder.path() +
                                        "; what to do: name a regular file or a block device");
  for (const std::string& path : {fifo, std::string("/dev/null")})
    EXPECT_EQ(errorOf(path), "open: invalid: it is no regular file or block device; file " + path +
                                 "; what to do: name a regular file or a block device");
  EXPECT_EQ(storedFile("open", -1, "none").error().os_errno, EBADF);
}

}  // namespace
}  // namespace viaduct::base
