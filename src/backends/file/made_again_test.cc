// Files that are removed and made again behind their pins, on file systems that reuse inode
// numbers.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "backends/file/file_testing.h"
#include "backends/file/mounted_testing.h"
#include "base/file_generation.h"
#include "base/stored_file.h"

namespace viaduct::testing {
namespace {

constexpr std::uint64_t kBytes = 4096;
constexpr int kRounds = 200;

ino_t inodeOf(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

// The tests' folder on each kind of file system. An overlay writes to an ext4.
class RecreatedFiles : public FileTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam();
    if (kind == "tmpfs") {
      mounted_.emplace(path("disk"), "tmpfs", "viaduct-test", "size=16m");
    } else {
      ext4_.emplace(path("ext4"));
      if (!*ext4_) GTEST_SKIP() << "skipped: no right to mount, no loop device or no mkfs.ext4";
      if (kind == "ext4") return openOn("ext4");
      for (const char* name : {"lower", "ext4/upper", "ext4/work"})
        std::filesystem::create_directory(path(name));
      make("lower/below", kBytes, 7);
      mounted_.emplace(path("disk"), "overlay", "viaduct-test",
                       "lowerdir=" + path("lower") + ",upperdir=" + path("ext4/upper") +
                           ",workdir=" + path("ext4/work"));
    }
    if (!*mounted_) GTEST_SKIP() << "skipped: no right to mount " << kind;
    openOn("disk");
  }
  // Opens an agent that keeps one descriptor, so that the use of one file closes the other.
  void openOn(const std::string& folder) {
    folder_name_ = folder;
    Settings with = settings();
    with.others["VIADUCT_FILE_DESCRIPTORS"] = "1";
    open(with);
    make(on("other"), kBytes, 3);
    memory_.emplace(allocated(kBytes));
    other_.emplace(pinned(Segment::file(path(on("other")))));
  }
  std::string on(const std::string& name) const { return folder_name_ + "/" + name; }
  // Reads and writes the pin `file`, whose path names another file now.
  void expectNotFound(const Pin& file, bool write_first) {
    for (const bool writes : {write_first, !write_first}) {
      const Status moved =
          writes ? write(file, 0, *memory_, 0, kBytes) : read(file, 0, *memory_, 0, kBytes);
      if (moved) {
        ++ended_well_;
      } else {
        EXPECT_EQ(moved.error().code, Code::kNotFound) << moved.error().text();
      }
    }
  }
  void oneRound(int round) {
    const bool used = round % 2 != 0, by_link = round / 2 % 2 != 0;
    make(on("data"), kBytes, 1);
    const ino_t inode = inodeOf(path(on("data")));
    const Pin file = pinned(Segment::file(path(on("data"))));
    if (used) {
      ASSERT_TRUE(read(file, 0, *memory_, 0, kBytes));
      ASSERT_TRUE(read(*other_, 0, *memory_, 0, kBytes));  // closes "data"
    }
    ASSERT_EQ(::unlink(path(on("data")).c_str()), 0);
    const auto content = make(on(by_link ? "victim" : "data"), kBytes, 2);
    if (by_link) {
      ASSERT_EQ(::link(path(on("victim")).c_str(), path(on("data")).c_str()), 0);
    }
    if (inodeOf(path(on("data"))) == inode) ++reused_;
    expectNotFound(file, round % 3 == 0);
    EXPECT_TRUE(same(bytesOfFile(path(on("data"))), content)) << "a write reached another file";
    std::filesystem::remove(path(on("victim")));
    ASSERT_EQ(::unlink(path(on("data")).c_str()), 0);
  }

  std::optional<MountedExt4> ext4_;
  std::optional<Mounted> mounted_;
  std::string folder_name_;
  std::optional<Pin> memory_, other_;
  int ended_well_ = 0, reused_ = 0;
};

TEST_P(RecreatedFiles, AreNeverTakenForThePinnedOnes) {
  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) oneRound(round);
  EXPECT_EQ(ended_well_, 0) << "of " << 2 * kRounds << " reads and writes";
  if (std::string(GetParam()) != "tmpfs") {
    EXPECT_GT(reused_, 0) << "no round had the same inode number, so the test proves nothing";
  }
}

TEST_P(RecreatedFiles, AFileThatStaysIsTheSameWhateverHappensToIt) {
  const std::string name = std::string(GetParam()) == "overlay" ? on("below") : on("data");
  if (name == on("data")) make(name, kBytes, 7);
  Segment segment = Segment::file(path(name));
  segment.access = MemoryAccess::kReadOnly;
  const Pin file = pinned(segment);
  ASSERT_TRUE(read(file, 0, *memory_, 0, kBytes));
  ASSERT_TRUE(read(*other_, 0, *memory_, 0, kBytes));
  const auto content = make(name, kBytes, 8);  // an overlay copies the file up
  ASSERT_EQ(::chmod(path(name).c_str(), 0640), 0);
  ASSERT_EQ(::link(path(name).c_str(), path(on("second")).c_str()), 0);
  const Status moved = read(file, 0, *memory_, 0, kBytes);
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_TRUE(same(memory_->bytes(), content));
}

INSTANTIATE_TEST_SUITE_P(On, RecreatedFiles, ::testing::Values("ext4", "tmpfs", "overlay"),
                         [](const auto& kind) { return std::string(kind.param); });

class FileReplaced : public FileTest {
 protected:
  void SetUp() override { open(settings()); }
};

TEST_F(FileReplaced, AFifoOrFolderInAFilesPlaceHoldsUpNothing) {
  make("other", kBytes);
  for (const char* direct : {"auto", "off"})
    for (const bool fifo : {false, true}) {
      Settings with = settings();
      with.others["VIADUCT_FILE_DIRECT"] = direct;
      open(with);
      make("data", kBytes);
      // An open for reading waits for a FIFO's writer.
      const Pin file = pinned(Segment::file(path(), {.read_only = true}));
      const Pin other = pinned(Segment::file(path("other")));
      const Pin memory = allocated(kBytes);
      std::filesystem::remove(path());
      ASSERT_EQ(fifo ? ::mkfifo(path().c_str(), 0600) : ::mkdir(path().c_str(), 0700), 0);
      const Status moved = read(file, 0, memory, 0, kBytes);
      ASSERT_FALSE(moved);
      EXPECT_EQ(moved.error().code, Code::kNotFound) << moved.error().text();
      EXPECT_TRUE(read(other, 0, memory, 0, kBytes));
      std::filesystem::remove(path());
    }
}

TEST_F(FileReplaced, ADeviceWithAnotherDiskIsAnotherDevice) {
  make("one", kMiB, 1);
  make("two", kMiB, 2);
  std::optional<LoopDevice> device(path("one"));
  const std::string name = device->name();
  if (name.empty()) GTEST_SKIP() << "skipped: no loop device";
  if (base::generationOf(base::openStored(name, false).get(), true) ==
      base::generationOf(base::openStored(name, false).get(), false))
    GTEST_SKIP() << "skipped: no sequence numbers of disks, which Linux has since 5.15";
  const Pin file = pinned(Segment::file(name));
  const Pin memory = allocated(kMiB);
  device.reset();
  const std::string attach = "losetup " + name + " " + path("two") + " 2>/dev/null";
  ASSERT_EQ(std::system(attach.c_str()), 0);
  const Status moved = read(file, 0, memory, 0, kMiB);
  EXPECT_EQ(std::system(("losetup --detach " + name).c_str()), 0);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, Code::kNotFound) << moved.error().text();
}

}  // namespace
}  // namespace viaduct::testing
