#include <gtest/gtest.h>

#include <string>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using testing::aksNd;
using testing::codesAboveInfo;
using testing::findingOf;
using testing::openShiftAfter;
using testing::roceNode;

using Codes = std::vector<std::string>;

constexpr auto kIb3 = "/sys/class/infiniband/mlx5_ib3/ports/1/";

TEST(CheckRdma, NamesPortsThatAreDown) {
  const auto folder = aksNd();
  folder.rewrite(std::string(kIb3) + "state", "1: DOWN");
  folder.rewrite(std::string(kIb3) + "phys_state", "3: Disabled");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"rdma.port-down"});
  folder.rewrite("/sys/class/infiniband/mlx5_ib5/ports/1/state", "1: DOWN");
  const Finding finding = findingOf(folder, "rdma.port-down");
  EXPECT_EQ(finding.what, "mlx5_ib3, mlx5_ib5 are down.") << "one finding for both";
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(finding.evidence.at(0).source, std::string(kIb3) + "state");
  EXPECT_EQ(finding.evidence.at(0).value, "1: DOWN");
}

TEST(CheckRdma, NamesRatesBelowThoseOfSiblings) {
  const auto folder = roceNode();
  folder.rewrite("/sys/class/infiniband/mlx5_3/ports/1/rate", "100 Gb/sec (1X NDR)");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"rdma.rate-below-siblings"});
  EXPECT_EQ(findingOf(folder, "rdma.rate-below-siblings").what,
            "mlx5_3 (100 Gb/s) is slower than mlx5_0 of the same model (400 Gb/s).");
}

TEST(CheckRdma, TakesASlowRateOfAllPortsForAnOldKernel) {
  const auto folder = aksNd();
  for (int i = 0; i < 8; ++i)
    folder.rewrite("/sys/class/infiniband/mlx5_ib" + std::to_string(i) + "/ports/1/rate",
                   i % 2 == 0 ? "10 Gb/sec (4X SDR)" : "10 Gb/sec (4X)");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  EXPECT_EQ(findingOf(folder, "rdma.rate-unnamed").severity, Severity::kInfo);
}

TEST(CheckRdma, NamesFirmwareThatDiffers) {
  const auto folder = roceNode();
  folder.rewrite("/sys/class/infiniband/mlx5_3/fw_ver", "28.36.1010");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"rdma.firmware-differs"});
  EXPECT_TRUE(findingOf(folder, "rdma.firmware-differs")
                  .fix.ends_with("\n  mlxfwmanager -d 0000:6c:00.0 --update; mlxfwreset -d "
                                 "0000:6c:00.0 reset"));
}

TEST(CheckRdma, NamesAGivenDeviceThatProgramsCannotOpen) {
  const auto folder = openShiftAfter();
  folder.erase("/dev/infiniband/uverbs3");  // mlx5_12 belongs to another pod
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  folder.erase("/dev/infiniband/uverbs2");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"rdma.no-uverbs"});
  EXPECT_EQ(findingOf(folder, "rdma.no-uverbs").what,
            "Programs cannot open mlx5_6: /dev/infiniband has no file for it.");
}

TEST(CheckRdma, ReportsUnreadableFilesAsUnknown) {
  for (const char* garbage : {"", "\x1b[2J", "4", "ACTIVE", "99999999999999999999: X"}) {
    const auto folder = aksNd();
    folder.rewrite(std::string(kIb3) + "state", garbage);
    EXPECT_EQ(codesAboveInfo(folder), Codes{"rdma.state-unknown"}) << garbage;
  }
  for (const char* garbage : {"", "Gb/sec", "-400 Gb/sec (4X NDR)", "1e300 Gb/sec (4X NDR)",
                              "400 Gb/sec", "nan Gb/sec (4X NDR)", "400 Gb/sec )4X("}) {
    const auto folder = aksNd();
    folder.rewrite(std::string(kIb3) + "rate", garbage);
    EXPECT_EQ(codesAboveInfo(folder), Codes{"rdma.rate-unknown"}) << garbage;
  }
}

TEST(CheckRdma, DoesNotLookAtDevicesOfHostileNames) {
  const auto folder = testing::laptop();
  folder.write("/sys/class/infiniband/mlx5_0;reboot/ports/1/state", "4: ACTIVE");
  EXPECT_EQ(findingOf(folder, "rdma.odd-name").severity, Severity::kUnknown);
}

TEST(CheckRdma, LeavesUnusedSecondPortsAlone) {
  testing::NodeFolder folder;
  for (int i = 0; i < 4; ++i) {
    const std::string pci = "0000:1" + std::to_string(i / 2) + ":00." + std::to_string(i % 2);
    folder.addPci({.address = pci,
                   .bridge = "pci0000:00",
                   .vendor = "0x15b3",
                   .device = "0x1021",
                   .kind = "0x020700"});
    folder.addRdma({.name = "mlx5_" + std::to_string(i),
                    .pci = pci,
                    .state = i % 2 == 0 ? "4: ACTIVE" : "1: DOWN",
                    .phys_state = i % 2 == 0 ? "5: LinkUp" : "2: Polling"});
  }
  EXPECT_EQ(findingOf(folder, "rdma.polling").severity, Severity::kInfo);
}

}  // namespace
}  // namespace viaduct::diag
