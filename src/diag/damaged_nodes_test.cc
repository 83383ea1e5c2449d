// Tests with nodes whose files are damaged.
#include <gtest/gtest.h>

#include <string>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using testing::roceNode;

TEST(DamagedNodes, NeverLookHealthyOrCrash) {
  for (const auto make : {testing::gb200, testing::roceNode, testing::p6b200}) {
    const auto folder = make();
    for (const std::string& garbage : testing::garbageTexts()) {
      testing::fillAll(folder, garbage);
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
