#include "backends/ucx/transports.h"

#include <gtest/gtest.h>

#include "backends/ucx/choose.h"
#include "support/temporary_folder.h"

namespace viaduct::ucx {
namespace {

constexpr std::string_view kContext = R"(#
# UCP context
#
#     component 0  :  self
#            md 1  :  component 1  tcp 
#
#      resource 0  :  md 0  dev 0  flags -- self/memory0
#      resource 1  :  md 1  dev 1  flags -- tcp/lo
#      resource 2  :  md 1  dev 2  flags -s tcp/eth0.100
#      resource 3  :  md 2  dev 3  flags -- rc_mlx5/mlx5_0:1
#      resource 4  :  md 2  dev 3  flags -- rc_mlx5/mlx5_0:1
#
)";

TEST(Transports, AreReadFromAContextsText) {
  EXPECT_EQ(resourcesIn(kContext),
            (std::vector<Transport>{
                {"self", "memory0"}, {"tcp", "lo"}, {"tcp", "eth0.100"}, {"rc_mlx5", "mlx5_0:1"}}));
  for (const char* odd : {"", "\n\n", "# resource 1 : md 0 dev 0 flags --", "resource flags x y",
                          "# resource 1 : flags -- /x", "flags -- tcp/lo"})
    EXPECT_TRUE(resourcesIn(odd).empty()) << odd;
}

TEST(Transports, OfAnEndpointAreItsLanesForData) {
  constexpr std::string_view kTcp =
      "#   lane[0]:  1:tcp/eth0.100.0 md[1]    -> md[1]/tcp/sysdev[255] am am_bw#0 keepalive "
      "wireup\n";
  EXPECT_EQ(lanesIn(kTcp), (std::vector<Transport>{{"tcp", "eth0.100"}}));
  constexpr std::string_view kMixed =
      "#   lane[0]:  3:rc_mlx5/mlx5_0:1.0 md[2] -> md[2]/ib/sysdev[0] rma_bw#0\n"
      "#   lane[1]:  1:tcp/eth0.0 md[1]         -> md[1]/tcp/sysdev[255] am keepalive wireup\n";
  EXPECT_EQ(lanesIn(kMixed), (std::vector<Transport>{{"rc_mlx5", "mlx5_0:1"}}));
  for (const char* odd : {"", "lane[0]:", "# lane[0]: x -> rma", "lane[0]:  1: -> am"})
    EXPECT_TRUE(lanesIn(odd).empty()) << odd;
}

// An unknown transport must not pass for RDMA.
TEST(Transports, AreTcpUnlessTheirNameIsKnown) {
  EXPECT_EQ(kindOf("rc_verbs"), TransportKind::kRdma);
  EXPECT_EQ(kindOf("cuda_ipc"), TransportKind::kMemory);
  EXPECT_EQ(kindOf("tcp"), TransportKind::kTcp);
  EXPECT_EQ(kindOf("carrier_pigeon"), TransportKind::kTcp);
  EXPECT_EQ(transportText(std::vector<Transport>{{"rc_mlx5", "a"}, {"tcp", "b"}, {"rc_mlx5", "c"}}),
            "tcp,rc_mlx5");
}

TEST(Choose, KeepsTheUsersTransports) {
  EXPECT_EQ(transportsFor(true, true), "");
  EXPECT_EQ(transportsFor(false, false), "^shm");
  EXPECT_EQ(transportsFor(false, true), "^shm,tcp");
}

TEST(Choose, FindsADeviceOrListsTheDevices) {
  const auto there = resourcesIn(kContext);
  EXPECT_EQ(*deviceFor("eth0.100", there), "eth0.100");
  EXPECT_EQ(*deviceFor("mlx5_0", there), "mlx5_0:1");
  EXPECT_EQ(*deviceFor("mlx5_0:1", there), "mlx5_0:1");
  EXPECT_EQ(*deviceFor("127.0.0.1", there), "lo");
  const auto typo = deviceFor("mlx5_0:2", there);
  ASSERT_FALSE(typo);
  EXPECT_EQ(typo.error().code, Code::kNotFound);
  EXPECT_NE(typo.error().detail.find("lo, eth0.100, mlx5_0:1"), std::string::npos)
      << typo.error().text();
  EXPECT_EQ(typo.error().remedy, "did you mean mlx5_0:1?");
}

// The rule of docs/choosing.md. host/nearness_test.cc tests the distances.
TEST(Choose, OverRdmaEachDeviceNearOurCpusIsARailUnlessTheUserNamesRails) {
  using Names = std::vector<std::string>;
  const std::vector<Transport> there{{"tcp", "eth0"},
                                     {"rc_verbs", "mlx5_0:1"},
                                     {"rc_mlx5", "mlx5_0:1"},
                                     {"rc_mlx5", "mlx5_1:1"},
                                     {"cuda_copy", "cuda"}};
  const testing::TemporaryFolder folder;
  const host::Tree root(folder.path());
  EXPECT_EQ(railsFor({}, there, false, root)->devices, (Names{"mlx5_0:1", "mlx5_1:1"}));
  EXPECT_EQ(railsFor({}, there, true, root)->devices, Names{});
  EXPECT_EQ(railsFor({"mlx5_1"}, there, false, root)->devices, Names{"mlx5_1:1"});
  EXPECT_FALSE(railsFor({"mlx5_2"}, there, false, root));
  for (const char* one : {"mlx5_0", "mlx5_1"}) {
    const std::string rate = one == std::string("mlx5_0") ? "25" : "400";
    folder.write(std::string("/sys/class/infiniband/") + one + "/ports/1/rate", rate + " Gb/sec\n");
  }
  const auto rails = railsFor({}, there, false, host::Tree(folder.path()));
  EXPECT_EQ(rails->devices, Names{"mlx5_1:1"});
  EXPECT_EQ(rails->left_out, Names{"mlx5_0:1"});
}

}  // namespace
}  // namespace viaduct::ucx
