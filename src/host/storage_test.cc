#include "host/storage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/loop_device.h"
#include "support/temporary_folder.h"

namespace viaduct::host {
namespace {

using Names = std::vector<std::string>;

class StorageUnder : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    root_.write("/" + path, text + "\n");
  }
  void mount(const std::string& device, const std::string& point, const std::string& type,
             const std::string& source) {
    mounts_ += "30 1 " + device + " / " + point + " rw,relatime shared:1 - " + type + " " + source +
               " rw\n";
    put("proc/self/mountinfo", mounts_);
  }
  // A block device, with the devices below it.
  void device(const std::string& name, const std::string& number, const Names& below = {}) {
    const std::string at = "sys/devices/" + name;
    put(at + "/dev", number);
    for (const std::string& one : below) put(at + "/slaves/" + one + "/dev", "");
    for (const char* folder : {"sys/class/block/", "sys/dev/block/"}) {
      const std::string link =
          folder + (std::string_view(folder) == "sys/dev/block/" ? number : name);
      const std::filesystem::path whole = std::filesystem::path(root_.path()) / link;
      std::filesystem::create_directories(whole.parent_path());
      std::filesystem::create_directory_symlink("/" + at, whole);
    }
  }
  void loop(const std::string& file) {
    device("loop0", "7:0");
    put("sys/devices/loop0/loop/backing_file", file);
  }
  StorageStack files(const std::string& number) const {
    return storageOfFiles(Tree(root_.path()), number);
  }
  testing::TemporaryFolder root_;
  std::string mounts_;
};

TEST_F(StorageUnder, APartitionOfADiskIsTheLowestDevice) {
  mount("259:1", "/", "ext4", "/dev/root");
  device("nvme0n1p1", "259:1");
  EXPECT_EQ(files("259:1"), (StorageStack{{"ext4", "nvme0n1p1"}, {"nvme0n1p1"}, false}));
}

TEST_F(StorageUnder, MappedDevicesLeadToTheirParts) {
  mount("0:31", "/data", "btrfs", "/dev/dm-0");
  device("dm-0", "253:0", {"md0"});
  device("md0", "9:0", {"sda", "sdb"});
  device("sda", "8:0");
  device("sdb", "8:16");
  const StorageStack found = files("0:31");
  EXPECT_EQ(found.text(), "btrfs over dm-0 over md0 over sda over sdb");
  EXPECT_EQ(found.devices, (Names{"sda", "sdb"}));
  EXPECT_FALSE(found.in_memory);
}

TEST_F(StorageUnder, ALoopDeviceOverMemoryIsMemory) {
  mount("254:0", "/", "ext4", "/dev/vda");
  mount("0:23", "/dev/shm", "tmpfs", "tmpfs");
  mount("7:0", "/fast\\040disk", "xfs", "/dev/loop0");
  device("vda", "254:0");
  loop("/dev/shm/disk");
  EXPECT_EQ(files("7:0"), (StorageStack{{"xfs", "loop0", "tmpfs"}, {}, true}));
  EXPECT_EQ(storageOfDevice(Tree(root_.path()), "7:0").text(), "loop0 over tmpfs");
  put("sys/devices/loop0/loop/backing_file", "/home/disk");
  EXPECT_EQ(files("7:0"), (StorageStack{{"xfs", "loop0", "ext4", "vda"}, {"vda"}, false}));
  // The file of the loop device lies on the loop device itself, so the search must stop.
  put("sys/devices/loop0/loop/backing_file", "/fast disk/itself");
  EXPECT_TRUE(files("7:0").devices.empty());
}

TEST_F(StorageUnder, DevicesOfMemoryAreMemory) {
  mount("252:0", "/z", "ext4", "/dev/zram0");
  device("zram0", "252:0");
  EXPECT_TRUE(files("252:0").in_memory);
  mount("0:40", "/tmp", "tmpfs", "none");
  EXPECT_EQ(files("0:40"), (StorageStack{{"tmpfs"}, {}, true}));
}

TEST_F(StorageUnder, NetworkFileSystemsAreNamed) {
  mount("0:50", "/home", "nfs4", "server:/home");
  EXPECT_EQ(files("0:50"), (StorageStack{{"nfs4 (server:/home)"}, {}, false}));
  EXPECT_EQ(files("0:51"), StorageStack{});
}

TEST_F(StorageUnder, TheKernelCountsSectorsOf512Bytes) {
  device("vda", "254:0");
  const Tree before(root_.path());
  EXPECT_FALSE(diskCount(before, "vda"));
  put("sys/devices/vda/stat", "  491 79 100 98 436 29 200 604 0 40 15 19 2 21 9 3 1");
  EXPECT_EQ(diskCount(Tree(root_.path()), "vda"), (DiskCount{"vda", {51200, 102400}}));
}

TEST(StorageHere, ALoopDeviceOverSharedMemoryIsMemory) {
  const std::string file = "/dev/shm/viaduct_storage_" + std::to_string(::getpid());
  {
    const base::Fd made(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(made.get(), 1 << 20), 0);
  }
  const testing::LoopDevice loop(file);
  const StorageStack plain = storageUnder(file), below = storageUnder(loop.name());
  std::filesystem::remove(file);
  EXPECT_TRUE(plain.in_memory) << plain.text();
  if (loop.name().empty()) GTEST_SKIP() << "skipped: no loop devices";
  EXPECT_TRUE(below.in_memory) << below.text();
  EXPECT_TRUE(below.text().ends_with(" over tmpfs")) << below.text();
}

}  // namespace
}  // namespace viaduct::host
