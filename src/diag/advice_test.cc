#include "diag/advice.h"

#include <gtest/gtest.h>

#include <string>

#include "diag/fixtures_testing.h"

namespace viaduct::diag {
namespace {

using testing::Fixture;

std::string valueIn(const Advice& advice, const std::string& name) {
  for (const AdvisedVariable& one : advice.set)
    if (one.name == name) return one.value;
  return {};
}

std::string whyUnset(const Advice& advice, const std::string& name) {
  for (const UnsetVariable& one : advice.unset)
    if (one.name == name) return one.reason;
  return {};
}

TEST(Advice, OfAPodWithVirtualFunctions) {
  const Fixture folder = testing::openShiftAfter();
  const Advice advice = adviceFor(folder.node());
  EXPECT_EQ(valueIn(advice, "NCCL_IB_HCA"), "=mlx5_6,mlx5_7,mlx5_10,mlx5_11");
  EXPECT_EQ(valueIn(advice, "UCX_NET_DEVICES"), "mlx5_6:1,mlx5_7:1,mlx5_10:1,mlx5_11:1");
  EXPECT_EQ(valueIn(advice, "UCX_TLS"), "ib,sm,self,cuda");
  EXPECT_EQ(valueIn(advice, "NCCL_SOCKET_IFNAME"), "=eth0");
  EXPECT_EQ(valueIn(advice, "GLOO_SOCKET_IFNAME"), "eth0");
  EXPECT_EQ(valueIn(advice, "FI_PROVIDER"), "");
  EXPECT_EQ(whyUnset(advice, "NCCL_IB_GID_INDEX"),
            "NCCL 2.21 and newer choose it. An older NCCL needs 3 here.");
  EXPECT_EQ(advice.devices.find("RDMA devices: mlx5_6, mlx5_7, mlx5_10, mlx5_11 (named by PCI"), 0U)
      << advice.devices;
  EXPECT_TRUE(advice.remarks.empty());
}

TEST(Advice, SetsAGidIndexForAnOldNcclOnly) {
  Fixture folder = testing::openShiftAfter();
  std::erase_if(folder.live.libraries,
                [](const Live::Library& one) { return one.name == "libnccl.so.2"; });
  folder.live.libraries.push_back({"libnccl.so.2", "/usr/lib/libnccl.so.2", "2.19.3"});
  EXPECT_EQ(valueIn(adviceFor(folder.node()), "NCCL_IB_GID_INDEX"), "3");
  folder.rewrite("/sys/class/infiniband/mlx5_7/ports/1/gid_attrs/types/3", "IB/RoCE v1");
  folder.rewrite("/sys/class/infiniband/mlx5_7/ports/1/gid_attrs/types/2", "RoCE v2");
  const Advice advice = adviceFor(folder.node());
  EXPECT_EQ(valueIn(advice, "NCCL_IB_GID_INDEX"), "");
  EXPECT_NE(whyUnset(advice, "NCCL_IB_GID_INDEX").find("mlx5_6 3, mlx5_7 2, mlx5_10 3"),
            std::string::npos)
      << whyUnset(advice, "NCCL_IB_GID_INDEX");
}

TEST(Advice, OfAPodWithEfa) {
  const Fixture folder = testing::p5();
  const Advice advice = adviceFor(folder.node());
  EXPECT_EQ(valueIn(advice, "FI_PROVIDER"), "efa");
  EXPECT_EQ(valueIn(advice, "FI_EFA_USE_DEVICE_RDMA"), "1");
  EXPECT_EQ(valueIn(advice, "FI_EFA_ENABLE_SHM_TRANSFER"), "0");
  EXPECT_EQ(valueIn(advice, "SGLANG_DISAGGREGATION_NIXL_BACKEND"), "LIBFABRIC");
  for (const char* name : {"NCCL_IB_HCA", "UCX_TLS", "UCX_NET_DEVICES", "NCCL_IB_GID_INDEX"})
    EXPECT_EQ(valueIn(advice, name), "") << name;
  folder.write("/sys/devices/virtual/dmi/id/product_name", "g5.48xlarge");
  EXPECT_EQ(valueIn(adviceFor(folder.node()), "FI_EFA_USE_DEVICE_RDMA"), "");
}

TEST(Advice, LeavesOutDevicesOfAnotherNetwork) {
  const Fixture azure = testing::aksNd();
  const Advice on_azure = adviceFor(azure.node());
  EXPECT_EQ(valueIn(on_azure, "NCCL_IB_HCA"),
            "=mlx5_ib0,mlx5_ib1,mlx5_ib2,mlx5_ib3,mlx5_ib4,mlx5_ib5,mlx5_ib6,mlx5_ib7");
  EXPECT_EQ(valueIn(on_azure, "UCX_IB_ADDR_TYPE"), "eth");
  ASSERT_EQ(on_azure.remarks.size(), 1U);
  EXPECT_NE(on_azure.remarks[0].find("mlx5_an0"), std::string::npos);
  const Fixture b200 = testing::p6b200();
  EXPECT_EQ(valueIn(adviceFor(b200.node()), "NCCL_IB_HCA"), "");
}

TEST(Advice, LeavesOutDevicesThatAreDown) {
  const Fixture folder = testing::roceNode();
  folder.rewrite("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  const Advice advice = adviceFor(folder.node());
  EXPECT_EQ(valueIn(advice, "UCX_NET_DEVICES").find("mlx5_1:1,"), 0U);
}

TEST(Advice, WithoutRdmaIsTheInterfaceOnly) {
  for (auto* const make : {testing::laptop, testing::smallVm}) {
    const Fixture folder = make();
    const Advice advice = adviceFor(folder.node());
    EXPECT_EQ(advice.devices, "This node has no RDMA device.");
    ASSERT_EQ(advice.set.size(), 2U);
    EXPECT_EQ(advice.set[0].name, "NCCL_SOCKET_IFNAME");
    EXPECT_TRUE(advice.unset.empty());
  }
}

TEST(Advice, FindsTheDefaultRouteOfIpv6) {
  testing::NodeFolder folder;
  folder.addInterface({.name = "eth0"});
  const std::string zeros(32, '0');
  folder.write("/proc/net/ipv6_route", zeros + " 00 " + zeros + " 00 " + zeros +
                                           " ffffffff 00000001 0 00200200 lo\n" + zeros + " 00 " +
                                           zeros + " 00 fe80" + std::string(28, '0') +
                                           " 00000400 00000003 0 00450003 eth0");
  EXPECT_EQ(valueIn(adviceFor(folder.node()), "NCCL_SOCKET_IFNAME"), "=eth0");
}

TEST(Advice, NamesFaultsOfThePluginsVariables) {
  Fixture folder = testing::openShiftAfter();
  folder.variables["PCIDEVICE_X_INFO"] = "{\n";
  const Advice advice = adviceFor(folder.node());
  ASSERT_EQ(advice.remarks.size(), 1U);
  EXPECT_EQ(advice.remarks[0], "PCIDEVICE_X_INFO: {\\x0a is not JSON.");
  EXPECT_EQ(valueIn(advice, "NCCL_IB_HCA"), "=mlx5_6,mlx5_7,mlx5_10,mlx5_11");
}

}  // namespace
}  // namespace viaduct::diag
