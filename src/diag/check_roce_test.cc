#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using testing::Fixture;
using testing::openShiftAfter;
using testing::roceNode;

using Codes = std::vector<std::string>;

constexpr auto kNoGid = "0000:0000:0000:0000:0000:0000:0000:0000";
constexpr auto kPort3 = "/sys/class/infiniband/mlx5_3/ports/1/";

void eraseGid(const Fixture& folder, const std::string& device, unsigned index) {
  const std::string port = "/sys/class/infiniband/" + device + "/ports/1/";
  folder.rewrite(port + "gids/" + std::to_string(index), kNoGid);
  folder.erase(port + "gid_attrs/types/" + std::to_string(index));
}

TEST(CheckRoce, SaysThatALinkIsNotInfiniband) {
  const auto folder = openShiftAfter();
  const Findings findings = diagnose(folder.node());
  EXPECT_TRUE(std::ranges::any_of(findings.fines(), [](const Fine& one) {
    return one.what.find("this is RoCE, not InfiniBand") != std::string::npos;
  }));
}

TEST(CheckRoce, NamesInterfacesThatAreDown) {
  const auto folder = roceNode();
  folder.rewrite("/sys/class/net/rail3/operstate", "down");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.interface-down"});
  folder.rewrite(std::string(kPort3) + "state", "1: DOWN");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.interface-down"}) << "and not rdma.port-down too";
  folder.rewrite("/sys/class/net/rail3/operstate", "lowerlayerdown");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.interface-down"});
}

TEST(CheckRoce, NamesRailsWithoutGidOfVersion2) {
  const auto folder = roceNode();
  folder.rewrite(std::string(kPort3) + "gid_attrs/types/1", "IB/RoCE v1");
  folder.rewrite(std::string(kPort3) + "gid_attrs/types/3", "IB/RoCE v1");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.no-v2-gid"});
  for (const unsigned index : {0U, 1U, 2U, 3U}) eraseGid(folder, "mlx5_3", index);
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.no-v2-gid"});
}

TEST(CheckRoce, NamesRailsOfLinkLocalGidsOnly) {
  const auto folder = roceNode();
  eraseGid(folder, "mlx5_3", 2);
  eraseGid(folder, "mlx5_3", 3);
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.link-local-only"});
  EXPECT_EQ(findingOf(folder, "roce.link-local-only").fix.substr(0, 95),
            "Set the address again, which adds its GID:\n"
            "ip addr del 10.0.103.21/24 dev rail3; ip addr add 10");
}

TEST(CheckRoce, NamesRailsWithoutAddress) {
  auto folder = roceNode();
  std::erase_if(folder.live.addresses, [](const auto& one) { return one.interface == "rail3"; });
  eraseGid(folder, "mlx5_3", 2);
  eraseGid(folder, "mlx5_3", 3);
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.no-address"});
}

TEST(CheckRoce, LetsNcclUseIpv6WhereItIsTold) {
  auto folder = roceNode();
  for (auto& one : folder.live.addresses)
    if (one.interface == "rail3") one.address = "fd00:3::21";
  folder.rewrite(std::string(kPort3) + "gids/2", "fd00:0003:0000:0000:0000:0000:0000:0021");
  folder.rewrite(std::string(kPort3) + "gids/3", "fd00:0003:0000:0000:0000:0000:0000:0021");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.no-address"});
  folder.variables["NCCL_IB_ADDR_FAMILY"] = "AF_INET6";
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckRoce, JudgesDifferentIndicesByTheVersionOfNccl) {
  auto folder = roceNode();
  const std::string port = kPort3;
  folder.rewrite(port + "gids/5", "0000:0000:0000:0000:0000:ffff:0a00:6715");
  folder.rewrite(port + "gid_attrs/types/5", "RoCE v2");
  folder.rewrite(port + "gid_attrs/ndevs/5", "rail3");
  eraseGid(folder, "mlx5_3", 3);
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  EXPECT_EQ(findingOf(folder, "roce.index-differs").what,
            "The index of the right GID differs: 3 for mlx5_0, mlx5_1, mlx5_2, mlx5_4, mlx5_5, "
            "mlx5_6, mlx5_7; 5 for mlx5_3.");
  for (auto& one : folder.live.libraries)
    if (one.name == "libnccl.so.2") one.version = "2.20.5";
  EXPECT_EQ(findingOf(folder, "roce.index-differs").severity, Severity::kWarning);
  folder.variables["NCCL_IB_GID_INDEX"] = "3";
  EXPECT_EQ(findingOf(folder, "roce.index-differs").severity, Severity::kFailure);
}

TEST(CheckRoce, NamesSmallPackets) {
  const auto folder = roceNode();
  folder.rewrite("/sys/class/net/rail3/mtu", "1500");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.mtu"});
  EXPECT_EQ(findingOf(folder, "roce.mtu").what,
            "mlx5_3 (rail3) has an MTU of 1500, so RDMA packets carry 1024 bytes instead of 4096.");
  folder.rewrite("/sys/class/net/rail3/mtu", "4192");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"network.mtu"}) << "only unlike the others";
  for (const char* garbage : {"", "jumbo", "99999999999999999999999", "-9000", "0"}) {
    folder.rewrite("/sys/class/net/rail3/mtu", garbage);
    EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.mtu-unknown"}) << garbage;
  }
}

TEST(CheckRoce, IsNotAboutIwarp) {
  auto folder = testing::laptop();
  folder.addRdma({.name = "siw0",
                  .link_layer = "Ethernet",
                  .node_type = "4: RNIC",
                  .gids = {{"0200:0000:0000:0000:0000:0000:0000:0000", "", "enp0s31f6"}}});
  const std::array<std::string, 1> only{"roce"};
  EXPECT_EQ(diagnose(folder.node(), only).worst(), Severity::kInfo);
}

TEST(CheckRoce, NamesGivenDevicesWithoutInterface) {
  const auto folder = openShiftAfter();
  folder.erase("/sys/class/net/net4");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"roce.no-interface"});
}

}  // namespace
}  // namespace viaduct::diag
