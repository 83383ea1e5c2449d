// Tests with nodes whose files are damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

namespace fs = std::filesystem;
using testing::Fixture;
using testing::roceNode;

// All regular files below a folder of the node.
std::vector<fs::path> filesBelow(const std::string& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && !entry.is_symlink()) out.push_back(entry.path());
  return out;
}

void fillAll(const Fixture& folder, const std::string& text) {
  for (const fs::path& file : filesBelow(folder.root() + "/sys/devices"))
    folder.write(file.string().substr(folder.root().size()), text);
}

const std::vector<std::string> garbage_texts{
    "",   "\x1b[2J\x1b]0;x\x07", "99999999999999999999999999", "-1", "0x", "4: ACTIVE",
    "%s", std::string(1, '\0'),  std::string(70000, 'A')};

TEST(DamagedNodes, NeverLookHealthyOrCrash) {
  for (const auto make : {testing::gb200, testing::roceNode, testing::p6b200}) {
    const auto folder = make();
    for (const std::string& garbage : garbage_texts) {
      fillAll(folder, garbage);
      EXPECT_FALSE(testing::codesAboveInfo(folder).empty()) << garbage.substr(0, 40);
    }
  }
}

TEST(DamagedNodes, MayLoseAnyFolder) {
  const auto folder = roceNode();
  for (const char* gone : {"/sys/class/infiniband/mlx5_3/ports/1/gids",
                           "/sys/class/infiniband/mlx5_3/ports/1/counters",
                           "/sys/class/infiniband/mlx5_3/ports", "/sys/class/infiniband_verbs",
                           "/sys/class/net", "/dev", "/proc", "/sys/bus", "/sys/devices", "/sys"}) {
    folder.erase(gone);
    EXPECT_FALSE(testing::codesAboveInfo(folder).empty()) << gone;
  }
}

TEST(DamagedNodes, MayHaveLoopsOfLinks) {
  const auto folder = roceNode();
  folder.link(folder.place("/sys/class/infiniband/mlx5_0/ports/2"), "..");
  folder.link(folder.place("/sys/class/infiniband/mlx5_0/ports/3"), "3");
  folder.link(folder.place("/sys/class/infiniband/mlx5_1/device"), "device");
  folder.link(folder.place("/sys/class/net/rail2/operstate"), "../../../..");
  EXPECT_FALSE(testing::codesAboveInfo(folder).empty());
}

}  // namespace
}  // namespace viaduct::diag
