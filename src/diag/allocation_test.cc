#include "diag/allocation.h"

#include <gtest/gtest.h>

#include <string>

#include "diag/fixtures_testing.h"

namespace viaduct::diag {
namespace {

using testing::NodeFolder;
using Kind = AllocationFaultKind;

constexpr auto kInfo = "PCIDEVICE_OPENSHIFT_IO_RAIL0_INFO";
constexpr auto kAddresses = "PCIDEVICE_OPENSHIFT_IO_RAIL0";

// A port with two virtual functions: mlx5_6 at 0000:19:00.2, and mlx5_10 at 0000:19:00.3.
class AllocationTest : public ::testing::Test {
 protected:
  AllocationTest() {
    add("0000:19:00.0", "mlx5_0", "");
    add("0000:19:00.2", "mlx5_6", "0000:19:00.0");
    add("0000:19:00.3", "mlx5_10", "0000:19:00.0");
  }
  void add(const std::string& address, const std::string& name, const std::string& physical) {
    folder.addPci({.address = address,
                   .bridge = "pci0000:18",
                   .vendor = "0x15b3",
                   .device = physical.empty() ? "0x1021" : "0x101e",
                   .kind = "0x020000",
                   .physical = physical});
    folder.addRdma({.name = name, .pci = address});
  }
  Allocation found() const {
    const Node node = folder.node();
    return allocationOf(node);
  }
  // The kinds of all faults.
  std::vector<Kind> faults() const {
    std::vector<Kind> out;
    const Allocation given = found();
    for (const AllocationFault& one : given.faults) out.push_back(one.kind);
    return out;
  }
  NodeFolder folder;
};

TEST_F(AllocationTest, TheDescriptionOfThePluginIsTakenInTheOrderOfAddresses) {
  folder.variables[kInfo] =
      R"({"0000:19:00.3":{"rdma":{"rdma_dev":"mlx5_10"}},)"
      R"("0000:19:00.2":{"generic":{"deviceID":"0000:19:00.2"},"extra":{"a":1},)"
      R"("rdma":{"rdma_dev":"mlx5_6","uverbs":"/dev/infiniband/uverbs1"}}})";
  const Allocation given = found();
  EXPECT_EQ(given.known_by, KnownBy::kInfo);
  EXPECT_EQ(namesOf(given.devices), "mlx5_6, mlx5_10");
  EXPECT_EQ(namesOf(given.others), "mlx5_0");
  EXPECT_EQ(given.variables, std::vector<std::string>{kInfo});
  EXPECT_TRUE(given.faults.empty());
}

TEST_F(AllocationTest, SeveralResourcesAreJoined) {
  folder.variables["PCIDEVICE_A_INFO"] = R"({"0000:19:00.3":{"rdma":{"rdma_dev":"mlx5_10"}}})";
  folder.variables["PCIDEVICE_A"] = "0000:19:00.3";
  folder.variables["PCIDEVICE_B"] = "0000:19:00.2";
  const Allocation given = found();
  EXPECT_EQ(namesOf(given.devices), "mlx5_6, mlx5_10");
  EXPECT_EQ(given.variables, (std::vector<std::string>{"PCIDEVICE_B", "PCIDEVICE_A_INFO"}));
}

TEST_F(AllocationTest, AnOldPluginGivesAddressesOnly) {
  folder.variables[kAddresses] = "0000:19:00.3";
  EXPECT_EQ(found().known_by, KnownBy::kAddresses);
  EXPECT_EQ(namesOf(found().devices), "mlx5_10");
  folder.variables[kInfo] = R"({"0000:19:00.3":{"rdma":{"uverbs":"/dev/infiniband/uverbs2"}}})";
  EXPECT_EQ(found().known_by, KnownBy::kInfo);
  EXPECT_EQ(namesOf(found().devices), "mlx5_10");
  EXPECT_TRUE(found().faults.empty());
}

TEST_F(AllocationTest, ABrokenDescriptionLeavesTheAddresses) {
  folder.variables[kAddresses] = "0000:19:00.2";
  for (const std::string text :
       {R"({"0000:19:00.2":{"rdma":{"rdma_dev":"mlx5_)", "[]", "garbage", "{\"0000:19:00.2\":3}"}) {
    folder.variables[kInfo] = text;
    EXPECT_EQ(faults(), std::vector{Kind::kBrokenInfo}) << text;
    EXPECT_EQ(namesOf(found().devices), "mlx5_6") << text;
    EXPECT_EQ(found().known_by, KnownBy::kAddresses) << text;
  }
  folder.variables[kInfo] = std::string(100'000, '[');
  EXPECT_EQ(faults(), std::vector{Kind::kBrokenInfo});
}

TEST_F(AllocationTest, HostileNamesAreNotTaken) {
  folder.variables[kInfo] =
      R"({"0000:19:00.2":{"rdma":{"rdma_dev":"x;touch /tmp/\u001b[2Jpwned"}}})";
  ASSERT_EQ(faults(), std::vector{Kind::kHostileName});
  EXPECT_EQ(found().faults[0].subject, "x;touch /tmp/\\x1b[2Jpwned");
  EXPECT_EQ(namesOf(found().devices), "mlx5_6") << "the address says which device it is";
  folder.variables[kInfo] = R"({"../../etc":{"rdma":{"rdma_dev":"mlx5_6"}}})";
  EXPECT_EQ(faults(), std::vector{Kind::kHostileName});
  folder.variables[kInfo] = R"({"0000:19:00.2":{"rdma":{"rdma_dev":["mlx5_6"]}}})";
  EXPECT_EQ(faults(), std::vector{Kind::kHostileName});
  folder.variables.erase(kInfo);
  folder.variables[kAddresses] = "0000:19:00.2,$(reboot)";
  EXPECT_EQ(faults(), std::vector{Kind::kHostileName});
  EXPECT_EQ(namesOf(found().devices), "mlx5_6");
}

TEST_F(AllocationTest, ADeviceThatIsNotThereIsNamed) {
  folder.variables[kInfo] =
      R"({"0000:19:00.2":{"rdma":{"rdma_dev":"mlx5_6"}},"0000:19:00.7":{"rdma":{"rdma_dev":"mlx5_99"}}})";
  ASSERT_EQ(faults(), std::vector{Kind::kNoDevice});
  EXPECT_EQ(found().faults[0].subject, "mlx5_99 (0000:19:00.7)");
  EXPECT_EQ(namesOf(found().devices), "mlx5_6");
  folder.variables[kInfo] = R"({"0000:19:00.2":{"rdma":{"rdma_dev":"mlx5_77"}}})";
  EXPECT_EQ(faults(), std::vector{Kind::kRenamed});
  EXPECT_EQ(namesOf(found().devices), "mlx5_6");
}

TEST_F(AllocationTest, AFunctionForEthernetIsNoFault) {
  folder.addPci({.address = "0000:19:00.7",
                 .bridge = "pci0000:18",
                 .vendor = "0x8086",
                 .device = "0x1889",
                 .kind = "0x020000"});
  folder.variables["PCIDEVICE_INTEL_COM_DPDK_INFO"] =
      R"({"0000:19:00.7":{"vfio":{"mount":"/dev/vfio/1"}}})";
  EXPECT_EQ(faults(), std::vector{Kind::kNotRdma});
}

TEST_F(AllocationTest, WithoutVariablesTheFilesOfDevicesCount) {
  folder.remove("/dev/infiniband/uverbs0");
  folder.remove("/dev/infiniband/uverbs1");
  EXPECT_EQ(found().known_by, KnownBy::kDeviceFiles);
  EXPECT_EQ(namesOf(found().devices), "mlx5_10");
}

TEST_F(AllocationTest, WithAllFilesVirtualFunctionsAreForPodsAndPhysicalOnesForTheHost) {
  EXPECT_EQ(found().known_by, KnownBy::kPorts);
  EXPECT_EQ(namesOf(found().devices), "mlx5_0");
  folder.variables["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  EXPECT_EQ(found().known_by, KnownBy::kFunctions);
  EXPECT_EQ(namesOf(found().devices), "mlx5_6, mlx5_10");
}

TEST(Allocation, OfANodeWithoutDevicesIsEmpty) {
  NodeFolder folder;
  EXPECT_EQ(allocationOf(folder.node()).known_by, KnownBy::kNone);
  folder.variables = {{kAddresses, "0000:19:00.2"}};
  const Allocation given = allocationOf(folder.node());
  EXPECT_EQ(given.known_by, KnownBy::kNone);
  ASSERT_EQ(given.faults.size(), 1U);
  EXPECT_EQ(given.faults[0].kind, Kind::kNoDevice);
}

}  // namespace
}  // namespace viaduct::diag
