#include "host/pci.h"

#include <gtest/gtest.h>

#include "diag/node_testing.h"
#include "host/rdma.h"

namespace viaduct::diag {
namespace {

using testing::NodeFolder;

TEST(Pci, AddressesHaveADomainABusADeviceAndAFunction) {
  for (const char* good : {"0000:18:00.0", "10000:01:1f.7", "abcd:ff:00.1"})
    EXPECT_TRUE(isPciAddress(good)) << good;
  for (const char* bad : {"", "18:00.0", "0000:18:00", "0000:18:00.", "0000-18:00.0",
                          "0000:18:00.0/..", "pci0000:15", "zzzz:18:00.0"})
    EXPECT_FALSE(isPciAddress(bad)) << bad;
}

TEST(Pci, AVirtualFunctionAndItsDeviceKnowTheirPhysicalOne) {
  NodeFolder folder;
  folder.addPci({.address = "0000:19:00.0",
                 .bridge = "pci0000:15",
                 .above = {"0000:15:01.0"},
                 .vendor = "0x15b3",
                 .device = "0x1021",
                 .kind = "0x020000"});
  folder.addPci({.address = "0000:19:00.6",
                 .bridge = "pci0000:15",
                 .above = {"0000:15:01.0"},
                 .vendor = "0x15b3",
                 .device = "0x101e",
                 .kind = "0x020000",
                 .speed = "Unknown",
                 .width = "0",
                 .group = 103,
                 .group_type = "DMA-FQ",
                 .physical = "0000:19:00.0"});
  folder.addInterface({.name = "net1", .pci = "0000:19:00.6", .mtu = "9000"});
  folder.addRdma({.name = "mlx5_6",
                  .pci = "0000:19:00.6",
                  .rate = "100 Gb/sec (4X EDR)",
                  .link_layer = "Ethernet",
                  .gids = {{"fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1", "net1"},
                           {"0000:0000:0000:0000:0000:0000:0000:0000", "", ""},
                           {"0000:0000:0000:0000:0000:ffff:0a00:6a07", "RoCE v2", "net1"}}});
  const Node node = folder.node();
  const auto function = pciFunction(node.tree, "0000:19:00.6");
  ASSERT_TRUE(function);
  EXPECT_EQ(function->physical, "0000:19:00.0");
  EXPECT_EQ(function->place.pci, (std::vector<std::string>{"0000:15:01.0", "0000:19:00.6"}));
  EXPECT_EQ(function->group + " " + function->group_type, "103 DMA-FQ");
  EXPECT_EQ(function->link.gigatransfers, 0);
  auto devices = rdmaDevices(node.tree);
  ASSERT_EQ(devices.size(), 1U);
  readGids(node.tree, devices[0]);
  EXPECT_TRUE(devices[0].mellanox());
  EXPECT_EQ(devices[0].physical, "0000:19:00.0");
  EXPECT_EQ(devices[0].uverbs, "uverbs0");
  EXPECT_EQ(devices[0].interfaces, std::vector<std::string>{"net1"});
  const RdmaPort& port = devices[0].ports.at(0);
  EXPECT_TRUE(port.active() && port.roce());
  EXPECT_EQ(port.gigabits, 100);
  EXPECT_EQ(port.lanes, 4U);
  EXPECT_EQ(port.speed, "EDR");
  ASSERT_EQ(port.gids.size(), 2U);
  EXPECT_EQ(port.gids[1].index, 2U);
  EXPECT_EQ(port.gids[1].ipv4Address(), "10.0.106.7");
  EXPECT_TRUE(node.tree.unread().empty());
}

TEST(RdmaDevices, AreInTheOrderOfTheirNumbers) {
  NodeFolder folder;
  const std::vector<std::string> ordered{"mlx5_2",    "mlx5_10",    "mlx5_bond_0", "rdmap79s0",
                                         "rdmap79s1", "rdmap113s0", "rdmap113s10"};
  for (auto name = ordered.rbegin(); name != ordered.rend(); ++name)
    folder.write("/sys/class/infiniband/" + *name + "/fw_ver", "1");
  std::vector<std::string> names;
  for (const RdmaDevice& one : rdmaDevices(folder.node().tree)) names.push_back(one.name);
  EXPECT_EQ(names, ordered);
}

TEST(Pci, RatesFollowTheLineCoding) {
  const auto rate = [](double gigatransfers, unsigned width) {
    return PciLink{.gigatransfers = gigatransfers, .width = width}.bytesPerSecond() * 1e-9;
  };
  EXPECT_NEAR(rate(32, 16), 63.0, 0.1);
  EXPECT_NEAR(rate(16, 8), 15.75, 0.01);
  EXPECT_NEAR(rate(2.5, 1), 0.25, 0.001);
  EXPECT_EQ(rate(0, 16), 0);
}

}  // namespace
}  // namespace viaduct::diag
