// Nodes whose files are damaged, and nodes with two faults at once.
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

struct PlantedFault {
  const char* code;
  void (*plant)(Fixture&);
};

// Each on another device, so that two of them stay two.
const std::vector<PlantedFault> faults{
    {"rdma.polling",
     [](Fixture& folder) {
       folder.rewrite("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
       folder.rewrite("/sys/class/infiniband/mlx5_0/ports/1/phys_state", "2: Polling");
     }},
    {"rdma.rate-below-siblings",
     [](Fixture& folder) {
       folder.rewrite("/sys/class/infiniband/mlx5_1/ports/1/rate", "200 Gb/sec (2X NDR)");
     }},
    {"rdma.firmware-differs",
     [](Fixture& folder) { folder.rewrite("/sys/class/infiniband/mlx5_2/fw_ver", "28.36.1010"); }},
    {"rdma.no-uverbs", [](Fixture& folder) { folder.erase("/dev/infiniband/uverbs3"); }},
    {"roce.interface-down",
     [](Fixture& folder) { folder.rewrite("/sys/class/net/rail4/operstate", "down"); }},
    {"roce.no-v2-gid",
     [](Fixture& folder) {
       for (const char* index : {"1", "3"})
         folder.rewrite(
             std::string("/sys/class/infiniband/mlx5_5/ports/1/gid_attrs/types/") + index,
             "IB/RoCE v1");
     }},
    {"roce.mtu", [](Fixture& folder) { folder.rewrite("/sys/class/net/rail6/mtu", "1500"); }},
    {"roce.no-address",
     [](Fixture& folder) {
       std::erase_if(folder.live.addresses,
                     [](const auto& one) { return one.interface == "rail7"; });
     }},
    {"network.carrier-changes",
     [](Fixture& folder) { folder.rewrite("/sys/class/net/rail2/carrier_changes", "50"); }},
    {"counters.out-of-sequence",
     [](Fixture& folder) {
       folder.live.grown["/sys/class/infiniband/mlx5_3/ports/1/hw_counters/out_of_sequence"] = 5;
     }},
};

// Each fault in two pairs.
TEST(PlantedFaults, AreFoundInPairs) {
  for (std::size_t i = 0; i < faults.size(); ++i)
    for (const std::size_t j : {(i + 1) % faults.size(), (i + 3) % faults.size()}) {
      auto folder = roceNode();
      faults[i].plant(folder);
      faults[j].plant(folder);
      auto found = testing::codesAboveInfo(folder);
      std::vector<std::string> planted{faults[i].code, faults[j].code};
      std::sort(found.begin(), found.end());
      std::sort(planted.begin(), planted.end());
      EXPECT_EQ(found, planted);
    }
}

}  // namespace
}  // namespace viaduct::diag
