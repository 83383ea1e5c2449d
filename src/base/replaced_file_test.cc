#include "base/replaced_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "support/temporary_folder.h"

namespace viaduct::base {
namespace {

namespace fs = std::filesystem;

std::string textOf(const std::string& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

std::size_t filesIn(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

class ReplacedFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  static Status replace(const std::string& name, const std::string& content) {
    VIADUCT_TRY(const ReplacedFile file, ReplacedFile::open("save", name));
    return file.write(content);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(ReplacedFiles, HaveTheNewContentAndNothingIsLeftBesideThem) {
  for (const char* content : {"first", "second, and longer", "third"}) {
    ASSERT_TRUE(replace(path("a"), content));
    EXPECT_EQ(textOf(path("a")), content);
    EXPECT_EQ(filesIn(folder_.path()), 1U);
  }
}

TEST_F(ReplacedFiles, AreNotTouchedBeforeTheyAreWritten) {
  ASSERT_TRUE(ReplacedFile::open("save", path("absent")));
  EXPECT_EQ(filesIn(folder_.path()), 0U);
}

TEST_F(ReplacedFiles, KeepTheirRights) {
  ASSERT_TRUE(replace(path("a"), "x"));
  ASSERT_EQ(::chmod(path("a").c_str(), 0640), 0);
  ASSERT_TRUE(replace(path("a"), "y"));
  struct stat facts{};
  ASSERT_EQ(::stat(path("a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0640U);
}

TEST_F(ReplacedFiles, AreFoundBehindLinks) {
  fs::create_symlink("real", path("link"));
  ASSERT_TRUE(replace(path("link"), "x"));
  EXPECT_EQ(textOf(path("real")), "x");
  EXPECT_TRUE(fs::is_symlink(path("link")));
}

TEST_F(ReplacedFiles, NoLinkBesideThemLeadsElsewhere) {
  folder_.write("/victim", "precious");
  fs::create_symlink("victim", path("a.part"));
  ASSERT_TRUE(replace(path("a"), "x"));
  EXPECT_EQ(textOf(path("victim")), "precious");
}

TEST_F(ReplacedFiles, ArePrivateAndReplaceLinksIfAsked) {
  folder_.write("/victim", "precious");
  fs::create_symlink("victim", path("a"));
  const auto file = ReplacedFile::openPrivate("save", path("a"));
  ASSERT_TRUE(file && file->write("secret"));
  EXPECT_EQ(textOf(path("victim")), "precious");
  EXPECT_EQ(textOf(path("a")), "secret");
  struct stat facts{};
  ASSERT_EQ(::lstat(path("a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode, S_IFREG | 0600U);
}

TEST_F(ReplacedFiles, MayBeADeviceOrAMountPoint) {
  ASSERT_TRUE(replace("/dev/null", "x"));
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
  const auto full = replace("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().os_errno, ENOSPC);
  folder_.write("/below", "old");
  folder_.write("/above", "old and long");
  if (::mount(path("above").c_str(), path("below").c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "skipped: no right to mount";
  EXPECT_TRUE(replace(path("below"), "new"));
  EXPECT_EQ(textOf(path("below")), "new");
  ::umount2(path("below").c_str(), MNT_DETACH);
  EXPECT_EQ(textOf(path("above")), "new");
}

TEST_F(ReplacedFiles, MayBeAnOpenDescriptor) {
  folder_.write("/a", "old and long");
  const Fd open(::open(path("a").c_str(), O_RDWR | O_CLOEXEC));
  fs::create_symlink("/proc/self/fd/" + std::to_string(open.get()), path("link"));
  ASSERT_TRUE(replace(path("link"), "new"));
  struct stat facts{};
  ASSERT_EQ(::fstat(open.get(), &facts), 0);
  EXPECT_EQ(facts.st_size, 3) << "the descriptor's file has the new content";
  EXPECT_EQ(facts.st_nlink, 1U);
  const Fd memory(::memfd_create("viaduct-test", MFD_CLOEXEC));
  ASSERT_TRUE(replace("/proc/self/fd/" + std::to_string(memory.get()), "new"));
  ASSERT_EQ(::fstat(memory.get(), &facts), 0);
  EXPECT_EQ(facts.st_size, 3);
}

TEST_F(ReplacedFiles, MayBeInAFolderThatTakesNoOtherFile) {
  if (::geteuid() == 0) GTEST_SKIP() << "skipped: root may write to each folder";
  folder_.write("/a", "old");
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0500), 0);
  EXPECT_TRUE(replace(path("a"), "new"));
  const auto absent = replace(path("b"), "x");
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0700), 0);
  EXPECT_EQ(textOf(path("a")), "new");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::kDenied);
}

TEST_F(ReplacedFiles, KeepTheOldContentOnAFullDisk) {
  fs::create_directory(path("disk"));
  if (::mount("viaduct-test", path("disk").c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "skipped: no right to mount";
  folder_.write("/disk/a", "old");
  const auto done = replace(path("disk/a"), std::string(100'000, 'x'));
  EXPECT_EQ(textOf(path("disk/a")), "old");
  EXPECT_EQ(filesIn(path("disk")), 1U);
  ::umount2(path("disk").c_str(), MNT_DETACH);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kExhausted);
  EXPECT_NE(done.error().text().find("No space left"), std::string::npos) << done.error().text();
}

TEST_F(ReplacedFiles, AreRefusedWhereTheyCannotBe) {
  EXPECT_EQ(replace(folder_.path(), "x").error().code, Code::kInvalid);
  EXPECT_EQ(replace(path("none/a"), "x").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace viaduct::base
