#include "diag/libraries.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "diag/snapshot.h"
#include "support/temporary_folder.h"

namespace viaduct::diag {
namespace {

// The file contains no version, so the version can only come from its name.
TEST(Libraries, TheFileOfNcclIsNamedByItsRelease) {
  const viaduct::testing::TemporaryFolder folder;
  const std::string file = folder.path() + "/libnccl.so.2.19.3";
  std::ofstream(file).put(' ');
  std::filesystem::create_symlink(file, folder.path() + "/libnccl.so.2");
  const auto node = nodeIn("/");
  ASSERT_TRUE(node);
  const auto found = findNccl(node->tree, {{"LD_LIBRARY_PATH", "relative:" + folder.path()}});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].path, folder.path() + "/libnccl.so.2");
  EXPECT_EQ(found[0].version, "2.19.3");
}

}  // namespace
}  // namespace viaduct::diag
