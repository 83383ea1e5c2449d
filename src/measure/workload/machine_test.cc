#include "measure/workload/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "host/devices.h"
#include "support/temporary_folder.h"

namespace viaduct::measure {
namespace {

TEST(DevicesExist, InterfacesAddressesAndRdmaDevicesAreDevices) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(devicesExist({"mlx5_0"}, host::Tree(folder.path())));
  std::filesystem::create_directories(folder.path() + "/sys/class/infiniband/mlx5_0/ports/1");
  const host::Tree root(folder.path());
  for (const char* one : {"lo", "127.0.0.1", "mlx5_0", "mlx5_0:1"})
    EXPECT_TRUE(devicesExist({one}, root)) << one;
  const auto none = devicesExist({"lo", "mlx5_1"}, root);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().detail, "there is no device \"mlx5_1\"");
  EXPECT_EQ(none.error().remedy.rfind("did you mean mlx5_0? use one of ", 0), 0U)
      << none.error().remedy;
  EXPECT_EQ(devicesExist({"wlan0"}, root).error().remedy.rfind("use one of ", 0), 0U);
}

TEST(Requirements, AreCheckedAgainstEachOpenBackend) {
  const BackendInfo local{.name = "local", .open = true, .same_host = true};
  const BackendInfo tcp{.name = "tcp", .open = true, .tcp = true};
  const BackendInfo fabric{.name = "ofi", .open = true, .text = "over efa", .rdma = true};
  const BackendInfo closed{.name = "ucx"};
  EXPECT_TRUE(requirementMet({local, tcp}, ""));
  EXPECT_TRUE(requirementMet({local, tcp}, "proven")) << "of rows, not of backends";
  EXPECT_TRUE(requirementMet({local, closed}, "not-tcp,same-host,backend:local"));
  EXPECT_TRUE(requirementMet({fabric}, "rdma,not-tcp"));
  const BackendInfo stages{.name = "staged", .open = true};
  EXPECT_TRUE(requirementMet({local, stages}, "same-host")) << "no row measures stages";
  EXPECT_EQ(
      requirementMet({local, tcp}, "rdma").error().text(),
      "REQUIREMENT NOT MET: no RDMA here: unsupported: --require rdma excludes rows over local, "
      "tcp; what to do: `viaduct bench --explain` lists the backends");
  EXPECT_EQ(requirementMet({tcp, fabric}, "rdma").error().operation,
            "REQUIREMENT NOT MET: no RDMA by tcp");
  EXPECT_EQ(requirementMet({tcp, fabric}, "rdma").error().remedy, "use --backend ofi");
  EXPECT_EQ(requirementMet({fabric}, "rdma,backend:tcp").error().detail,
            "--require backend:tcp excludes rows over ofi (over efa)");
}

TEST(ListenHere, ListensOnTheAddressesOfNamedDevices) {
  using Places = std::vector<std::string>;
  EXPECT_EQ(listenHere({}), Places{"127.0.0.1:0"});
  EXPECT_EQ(listenHere({"no such", "127.0.0.1"}), Places{"127.0.0.1:0"});
  const auto lo = host::findDevice("lo");
  ASSERT_TRUE(lo);
  const bool v6 =
      std::find(lo->addresses.begin(), lo->addresses.end(), "::1") != lo->addresses.end();
  EXPECT_EQ(listenHere({"lo"}), (v6 ? Places{"127.0.0.1:0", "[::1]:0"} : Places{"127.0.0.1:0"}));
}

}  // namespace
}  // namespace viaduct::measure
