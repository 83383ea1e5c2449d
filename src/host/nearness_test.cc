// Tests of distances, with trees of links and files as the kernel lays them out.
#include "host/nearness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "host/rdma.h"
#include "support/temporary_folder.h"

namespace viaduct::host {
namespace {

using Kind = DistanceKind;
using Names = std::vector<std::string>;

class Machine : public ::testing::Test {
 protected:
  Machine() { runsOn("0-127"); }

  void put(const std::string& path, const std::string& text) const {
    root_.write("/" + path, text + "\n");
  }
  void runsOn(const std::string& cpus) {
    put("proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t" + cpus + "\nMems:");
  }
  void node(int number, const std::string& cpus, const std::string& distances) {
    const std::string at = "sys/devices/system/node/node" + std::to_string(number);
    put(at + "/cpulist", cpus);
    put(at + "/distance", distances);
  }
  void twoNodes() {
    node(0, "0-31,64-95", "10 21");
    node(1, "32-63,96-127", "21 10");
    put("sys/devices/system/node/online", "0-1");
  }
  // Makes the link `from`, which leads to `path` below /sys/devices.
  void link(const std::string& from, const std::string& path) {
    const std::filesystem::path at(root_.path());
    std::filesystem::create_directories((at / from).parent_path());
    std::filesystem::create_directory_symlink("/sys/devices/" + path, at / from);
  }
  void function(const std::string& path, int numa) {
    put("sys/devices/" + path + "/numa_node", std::to_string(numa));
  }
  void rdma(const std::string& name, const std::string& path, int numa,
            const std::string& rate = "400 Gb/sec (4X NDR)") {
    function(path, numa);
    link("sys/class/infiniband/" + name + "/device", path);
    link("sys/bus/pci/devices/" + path.substr(path.rfind('/') + 1), path);
    put("sys/class/infiniband/" + name + "/ports/1/rate", rate);
  }
  void gpu(const std::string& path, int numa) {
    const std::string address = path.substr(path.rfind('/') + 1);
    function(path, numa);
    put("sys/devices/" + path + "/class", "0x030200");
    put("sys/devices/" + path + "/vendor", "0x10de");
    link("sys/bus/pci/devices/" + address, path);
  }
  void twoSocketsWithTwoNicsEach() {
    twoNodes();
    rdma("mlx5_0", "pci0000:15/0000:15:01.0/0000:16:00.0", 0);
    rdma("mlx5_1", "pci0000:25/0000:25:01.0/0000:26:00.0", 0);
    rdma("mlx5_2", "pci0000:95/0000:95:01.0/0000:96:00.0", 1);
    rdma("mlx5_3", "pci0000:a5/0000:a5:01.0/0000:a6:00.0", 1);
  }
  Tree root() const { return Tree(root_.path()); }
  NearChoice choose(const Names& names) const { return nearOwnCpus(names, root()); }
  Place placeOfGpu() const { return placeAt(root(), kPciFunctions + gpuAddresses(root()).at(0)); }
  std::vector<NearGroup> groups(const Place& memory, const Names& names) const {
    return byNearness(memory, nicsNamed(names, root()), numaNodes(root()));
  }

  testing::TemporaryFolder root_;
};

const Names kFour{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"};

TEST_F(Machine, TwoSocketsEachHaveTheirOwnNicsFirst) {
  twoSocketsWithTwoNicsEach();
  EXPECT_EQ(placeOfNic("mlx5_2", root()),
            (Place{.pci = {"0000:95:01.0", "0000:96:00.0"}, .node = 1}));
  const auto near = groups({.node = 1}, kFour);
  ASSERT_EQ(near.size(), 2U);
  EXPECT_EQ(near[0].names, (Names{"mlx5_2", "mlx5_3"}));
  EXPECT_EQ(near[0].distance, (Distance{Kind::kNode}));
  EXPECT_EQ(near[1].names, (Names{"mlx5_0", "mlx5_1"}));
  EXPECT_EQ(near[1].distance, (Distance{Kind::kOtherNode, 21}));
  EXPECT_EQ(groups({.node = 0}, kFour)[0].names, (Names{"mlx5_0", "mlx5_1"}));
}

TEST_F(Machine, ASlingshotNicIsWhereItsFunctionIs) {
  twoNodes();
  runsOn("32-63");
  EXPECT_EQ(cxiNics(root()), Names{});
  for (const int numa : {0, 1}) {
    const std::string n = std::to_string(numa), path = "pci0000:0" + n + "/0000:0" + n + ":01.0";
    function(path, numa);
    link("sys/class/cxi/cxi" + n + "/device", path);
  }
  EXPECT_EQ(cxiNics(root()), (Names{"cxi0", "cxi1"}));
  EXPECT_EQ(choose({"cxi0", "cxi1"}).near, Names{"cxi1"});
}

TEST_F(Machine, AProcessUsesTheNicsNearTheCpusThatItMayRunOn) {
  twoSocketsWithTwoNicsEach();
  EXPECT_EQ(choose(kFour).near, kFour) << "it may run everywhere";
  runsOn("40-47");
  EXPECT_EQ(choose(kFour).near, (Names{"mlx5_2", "mlx5_3"}));
  EXPECT_EQ(choose(kFour).rest, (Names{"mlx5_0", "mlx5_1"}));
  runsOn("31,64");
  EXPECT_EQ(choose(kFour).near, (Names{"mlx5_0", "mlx5_1"}));
  runsOn("31-32");
  EXPECT_EQ(choose(kFour).near, kFour);
  EXPECT_EQ(choose({}).near, Names{});
}

TEST_F(Machine, AProcessWithoutANicOfItsNodeUsesTheNearestOthers) {
  node(0, "0-7", "10 12 32");
  node(1, "8-15", "12 10 32");
  node(2, "16-23", "32 32 10");
  rdma("mlx5_1", "pci0000:25/0000:25:01.0/0000:26:00.0", 1);
  rdma("mlx5_2", "pci0000:95/0000:95:01.0/0000:96:00.0", 2);
  runsOn("0-7");
  EXPECT_EQ(choose({"mlx5_2", "mlx5_1"}).near, Names{"mlx5_1"});
}

// The kernel's list omits offline nodes: here nodes 1 and 3.
TEST_F(Machine, DistancesAreInTheOrderOfTheOnlineNodes) {
  node(0, "0-7", "10 11 12");
  node(2, "8-15", "11 10 13");
  node(10, "16-23", "12 13 10");
  const Nodes nodes = numaNodes(root());
  EXPECT_EQ(nodes.numbers, (std::vector<int>{0, 2, 10}));
  EXPECT_EQ(distance({.node = 2}, {.node = 10}, nodes), (Distance{Kind::kOtherNode, 13}));
  EXPECT_EQ(distance({.node = 10}, {.node = 0}, nodes), (Distance{Kind::kOtherNode, 12}));
  EXPECT_EQ(distance({.node = 10}, {.node = 3}, nodes).kind, Kind::kOtherNode);
}

TEST_F(Machine, AGpuHasTheNicBehindItsSwitchFirst) {
  twoNodes();
  const std::string one = "pci0000:15/0000:15:01.0/0000:16:00.0/";
  gpu(one + "0000:17:00.0/0000:18:00.0", 0);
  rdma("mlx5_0", one + "0000:17:01.0/0000:19:00.0", 0);
  rdma("mlx5_1", "pci0000:25/0000:25:01.0/0000:26:00.0", 0);
  rdma("mlx5_2", "pci0000:95/0000:95:01.0/0000:96:00.0", 1);
  EXPECT_EQ(gpuAddresses(root()), Names{"0000:18:00.0"});
  const auto near = groups(placeOfGpu(), {"mlx5_2", "mlx5_1", "mlx5_0"});
  ASSERT_EQ(near.size(), 3U);
  EXPECT_EQ(near[0].names, Names{"mlx5_0"});
  EXPECT_EQ(near[0].distance, (Distance{Kind::kBridge, 2}));
  EXPECT_EQ(near[1].names, Names{"mlx5_1"});
  EXPECT_EQ(near[1].distance, (Distance{Kind::kNode}));
  EXPECT_EQ(near[2].names, Names{"mlx5_2"});
}

// One root port leads to all devices, but each GPU still has a NIC that is near to this GPU alone.
TEST_F(Machine, TheNearestOfNestedSwitchesCounts) {
  twoNodes();
  const std::string top = "pci0000:15/0000:15:01.0/0000:16:00.0/";
  gpu(top + "0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0", 0);
  rdma("mlx5_0", top + "0000:17:01.0/0000:28:00.0/0000:29:00.0/0000:2a:00.0", 0);
  rdma("mlx5_1", top + "0000:17:00.0/0000:18:00.0/0000:19:01.0/0000:1b:00.0", 0);
  const auto near = groups(placeOfGpu(), {"mlx5_0", "mlx5_1"});
  ASSERT_EQ(near.size(), 2U);
  EXPECT_EQ(near[0].names, Names{"mlx5_1"});
  EXPECT_LT(near[0].distance, near[1].distance);
  EXPECT_EQ(near[1].distance.kind, Kind::kBridge);
}

TEST_F(Machine, AGpuIsConfirmedByItsPciFunctionItsDriverAndItsModel) {
  const std::string at = "0000:18:00.0", function = "pci0000:15/0000:15:01.0/" + at;
  const auto doubt = [&](const std::string& address = "0000:18:00.0") {
    return doubtOfNvidiaGpu(root(), address, "GPU 0 (NVIDIA H100 80GB HBM3)");
  };
  EXPECT_EQ(doubt(""), "its driver does not tell its PCI address");
  EXPECT_EQ(doubt(), "the kernel knows no NVIDIA device at 0000:18:00.0");
  gpu(function, 0);
  EXPECT_EQ(doubt(), "the kernel's driver of 0000:18:00.0 is none, not nvidia");
  put("sys/devices/drivers/nvidia/module", "");
  link("sys/devices/" + function + "/driver", "drivers/nvidia");
  EXPECT_EQ(doubt(), "") << "a container may hide the driver's own files";
  const std::string information = "proc/driver/nvidia/gpus/" + at + "/information";
  put(information, "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 60");
  EXPECT_EQ(doubt(), "");
  put(information, "Model: \t\t NVIDIA T4\nIRQ:   \t\t 60");
  EXPECT_EQ(doubt(), "the kernel's driver knows NVIDIA T4 at 0000:18:00.0");
}

TEST_F(Machine, ADisplayAdapterIsNoGpu) {
  gpu("pci0000:15/0000:15:01.0/0000:16:00.0", 0);
  put("sys/devices/pci0000:00/0000:00:02.0/class", "0x030000");
  put("sys/devices/pci0000:00/0000:00:02.0/vendor", "0x1a03");
  link("sys/bus/pci/devices/0000:00:02.0", "pci0000:00/0000:00:02.0");
  EXPECT_EQ(gpuAddresses(root()).size(), 1U);
}

TEST_F(Machine, AVirtualNicIsUsedOnlyWhereThereIsNoOther) {
  twoNodes();
  put("sys/class/infiniband/rxe0/ports/1/rate", "400 Gb/sec (4X NDR)");
  put("sys/class/net/veth1/mtu", "1500");
  EXPECT_EQ(placeOfNic("rxe0", root()), Place{});
  EXPECT_EQ(placeOfNic("veth1", root()), Place{});
  EXPECT_EQ(placeOfNic("nothing", root()), Place{});
  EXPECT_EQ(choose({"rxe0"}).near, Names{"rxe0"});
  EXPECT_EQ(groups({.node = 0}, {"rxe0"})[0].distance.kind, Kind::kUnknown);
  rdma("mlx5_0", "pci0000:15/0000:15:01.0/0000:16:00.0", 0);
  EXPECT_EQ(choose({"rxe0", "mlx5_0"}).near, Names{"mlx5_0"});
  EXPECT_EQ(choose({"rxe0", "mlx5_0"}).rest, Names{"rxe0"});
}

TEST_F(Machine, WithOneNodeAllNicsAreEquallyNear) {
  for (const bool told : {false, true}) {  // a kernel without NUMA has no folder of nodes
    if (told) node(0, "0-127", "10");
    EXPECT_FALSE(numaNodes(root()).several());
    if (!told) {
      rdma("mlx5_0", "pci0000:15/0000:15:01.0/0000:16:00.0", -1);
      rdma("mlx5_1", "pci0000:25/0000:25:01.0/0000:26:00.0", -1);
    }
    const Names both{"mlx5_0", "mlx5_1"};
    EXPECT_EQ(choose(both).near, both);
    for (const int memory : {-1, 0}) {
      const auto near = groups({.node = memory}, both);
      ASSERT_EQ(near.size(), 1U);
      EXPECT_EQ(near[0].distance, (Distance{Kind::kNode}));
    }
  }
}

TEST_F(Machine, WithoutKnownNodesAllNicsAreEquallyFar) {
  twoNodes();
  rdma("mlx5_0", "pci0000:15/0000:15:01.0/0000:16:00.0", -1);
  rdma("mlx5_1", "pci0000:25/0000:25:01.0/0000:26:00.0", -1);
  runsOn("0-7");
  EXPECT_EQ(choose({"mlx5_0", "mlx5_1"}).near, (Names{"mlx5_0", "mlx5_1"}));
}

// A server's slow management NIC is on another network, so it must not be chosen.
TEST_F(Machine, TheFastestOfEquallyNearNicsAreUsed) {
  twoNodes();
  rdma("mlx5_0", "pci0000:15/0000:15:01.0/0000:16:00.0", 0, "25 Gb/sec (1X EDR)");
  rdma("mlx5_1", "pci0000:25/0000:25:01.0/0000:26:00.0", 0);
  rdma("mlx5_2", "pci0000:35/0000:35:01.0/0000:36:00.0", 0);
  EXPECT_EQ(choose({"mlx5_0", "mlx5_1", "mlx5_2"}).near, (Names{"mlx5_1", "mlx5_2"}));
  EXPECT_EQ(choose({"mlx5_0:1", "mlx5_1:1"}).near, Names{"mlx5_1:1"}) << "as UCX names them";
}

TEST_F(Machine, AVirtualFunctionIsNoSecondNicBesideItsPhysicalOne) {
  twoNodes();
  const std::string port = "pci0000:15/0000:15:01.0/";
  rdma("mlx5_0", port + "0000:16:00.0", 0);
  for (const char* one : {"1", "2"}) {
    rdma(std::string("mlx5_") + one, port + "0000:16:00." + one, 0);
    link("sys/devices/" + port + "0000:16:00." + one + "/physfn", port + "0000:16:00.0");
  }
  EXPECT_EQ(choose({"mlx5_0", "mlx5_1", "mlx5_2"}).near, Names{"mlx5_0"});
  // A container that got only these two NICs uses both.
  EXPECT_EQ(choose({"mlx5_1", "mlx5_2"}).near, (Names{"mlx5_1", "mlx5_2"}));
}

TEST_F(Machine, AFunctionBehindAVirtualRootComplexHasAPlace) {
  rdma("mlx5_0", "pci0000:15/0000:15:05.5/pci10000:00/10000:00:02.0/10000:01:00.0", 1);
  EXPECT_EQ(placeOfNic("mlx5_0", root()),
            (Place{.pci = {"0000:15:05.5", "10000:00:02.0", "10000:01:00.0"}, .node = 1}));
}

TEST_F(Machine, AnInterfaceBelowAVirtioDeviceIsWhereItsFunctionIs) {
  function("pci0000:00/0000:00:03.0", 1);
  put("sys/devices/pci0000:00/0000:00:03.0/virtio0/features", "0");
  link("sys/class/net/eth0/device", "pci0000:00/0000:00:03.0/virtio0");
  EXPECT_EQ(placeOfNic("eth0", root()), (Place{.pci = {"0000:00:03.0"}, .node = 1}));
}

TEST(Nearness, IsReadFromThisMachineAsWell) {
  const Nodes nodes = numaNodes();
  EXPECT_EQ(nodes.numbers.empty(), nodesOfOwnCpus(nodes).empty());
  std::vector<char> memory(1 << 20, 'x');
  const int node = nodeOfMemory(memory.data(), memory.size());
  const auto& all = nodes.numbers;
  EXPECT_TRUE(node < 0 || all.empty() || std::find(all.begin(), all.end(), node) != all.end());
  EXPECT_EQ(nodeOfMemory(nullptr, 4096), -1);
}

TEST(Nearness, MemoryIsOnANodeThatHasThreeQuartersOfIt) {
  EXPECT_EQ(nodeOfPages(std::vector<int>{1, 1, 1, 0}), 1);
  EXPECT_EQ(nodeOfPages(std::vector<int>{1, 1, 0, 1, 0}), -1) << "it is on both";
  EXPECT_EQ(nodeOfPages(std::vector<int>{0, 1, 2, 3}), -1);
  EXPECT_EQ(nodeOfPages(std::vector<int>{0, -2, -2, -2}), -1) << "most are on none yet";
  EXPECT_EQ(nodeOfPages(std::vector<int>{}), -1);
}

TEST(Nearness, HasWords) {
  EXPECT_EQ(textOf({Kind::kBridge, 0}), "same PCIe bridge");
  EXPECT_EQ(textOf({Kind::kBridge, 2}), "same PCIe switch, 2 bridges between");
  EXPECT_EQ(textOf({Kind::kNode}), "same node");
  EXPECT_EQ(textOf({Kind::kOtherNode, 21}), "another node, distance 21");
}

}  // namespace
}  // namespace viaduct::host
