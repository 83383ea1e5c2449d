// Tests with files that no kernel has, and folders with links that lead out of the root.
#include "host/tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_folder.h"

namespace viaduct::host {
namespace {

using TextState = FileText::State;

class Trees : public ::testing::Test {
 protected:
  Trees() : tree_(*Tree::open(folder_.path(), why_)) {}
  std::string why_;
  viaduct::testing::TemporaryFolder folder_;
  Tree tree_;
};

TEST_F(Trees, GiveAFilesTextOrTheReason) {
  folder_.write("/state", "  4: ACTIVE \nmore\n");
  folder_.write("/lid", "0x1f\n");
  folder_.write("/empty", "");
  folder_.write("/binary", std::string("a\0b", 3));
  folder_.write("/long", std::string(Tree::kMostBytes + 1, 'x'));
  ASSERT_EQ(::mkfifo((folder_.path() + "/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("loop", folder_.path() + "/loop");
  EXPECT_EQ(tree_.line("/state"), "4: ACTIVE");
  EXPECT_EQ(tree_.number("/lid"), 31U);
  EXPECT_EQ(tree_.number("/state"), std::nullopt);
  EXPECT_TRUE(tree_.read("/empty"));
  EXPECT_EQ(tree_.read("/absent").state, TextState::kAbsent);
  EXPECT_TRUE(tree_.unread().empty());
  for (const char* path : {"/binary", "/long", "/pipe", "/loop"}) {
    EXPECT_EQ(tree_.read(path).state, TextState::kUnreadable) << path;
    EXPECT_EQ(tree_.unread().back().path, path);
    EXPECT_FALSE(tree_.unread().back().denied);
  }
  static_cast<void>(tree_.read("/binary"));
  EXPECT_EQ(tree_.unread().size(), 4U) << "each once";
  EXPECT_EQ(tree_.readBytes("/binary", 2).text, std::string("a\0", 2));
}

TEST_F(Trees, MarkFilesThatAnotherUserMayRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "skipped: root may read all files";
  folder_.write("/secret", "x");
  ASSERT_EQ(::chmod((folder_.path() + "/secret").c_str(), 0), 0);
  EXPECT_EQ(tree_.read("/secret").state, TextState::kDenied);
  EXPECT_TRUE(tree_.unread().at(0).denied);
}

TEST_F(Trees, KeepLinksWithinTheRoot) {
  folder_.write("/sys/devices/a/state", "up");
  std::filesystem::create_directories(folder_.path() + "/sys/class");
  const auto link = [&](const char* name, const char* target) {
    std::filesystem::create_symlink(target, folder_.path() + "/sys/class/" + name);
  };
  link("absolute", "/sys/devices/a");
  link("relative", "../devices/a");
  link("above", "../../../../../../etc");
  link("outside", "/etc/passwd");
  EXPECT_EQ(tree_.line("/sys/class/absolute/state"), "up");
  EXPECT_EQ(tree_.line("/sys/class/relative/state"), "up");
  EXPECT_EQ(tree_.resolve("/sys/class/relative"), "/sys/devices/a");
  EXPECT_EQ(tree_.resolve("/sys/class/absolute/.."), "/sys/devices");
  EXPECT_TRUE(tree_.has("/sys/class/relative/state"));
  EXPECT_FALSE(tree_.has("/sys/class/above/passwd"));
  EXPECT_EQ(tree_.read("/sys/class/outside").state, TextState::kAbsent);
  EXPECT_EQ(tree_.resolve("/sys/class/outside"), "");
}

TEST_F(Trees, ListFoldersInOrder) {
  folder_.write("/d/b", "");
  folder_.write("/d/a", "");
  EXPECT_EQ(tree_.list("/d"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(tree_.list("/none").empty());
  EXPECT_TRUE(tree_.list("/d/a").empty());
}

TEST(Tree, AMissingFolderIsAnErrorWithItsReason) {
  std::string why;
  EXPECT_FALSE(Tree::open("/nowhere/at/all", why));
  EXPECT_EQ(why, "No such file or directory");
}

}  // namespace
}  // namespace viaduct::host
