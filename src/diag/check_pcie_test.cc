#include <fmt/format.h>
#include <gtest/gtest.h>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/pcie_path.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;

// The path from the CPU down to mlx5_0 on roceNode(). The GPU beside it is 0000:19:00.0.
constexpr auto kRootPort = "0000:15:01.0";
constexpr auto kUpstream = "0000:16:00.0";
constexpr auto kPciePort = "0000:17:00.0";
constexpr auto kNic = "0000:18:00.0";

void set(const testing::Fixture& folder, const char* address, const char* file, const char* text) {
  folder.rewrite(fmt::format("/sys/bus/pci/devices/{}/{}", address, file), text);
}

// Sets the speed at both ends of a link, because both show it.
void setSpeed(const testing::Fixture& folder, const char* above, const char* below,
              const char* text) {
  set(folder, above, "current_link_speed", text);
  set(folder, below, "current_link_speed", text);
}

TEST(CheckPcie, NamesALinkThatTrainedAtALowerSpeed) {
  const auto folder = testing::roceNode();
  setSpeed(folder, kPciePort, kNic, "16.0 GT/s PCIe");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"pcie.speed"});
  const Finding finding = findingOf(folder, "pcie.speed");
  EXPECT_EQ(finding.what, "The PCIe link of mlx5_0 runs below its speed.");
  EXPECT_EQ(finding.evidence.at(0).value, "16 GT/s x16, at most 32 GT/s x16");
  EXPECT_NE(finding.fix.find(kNic), std::string::npos);
}

TEST(CheckPcie, NamesASlowBridgeFurtherUp) {
  const auto folder = testing::roceNode();
  setSpeed(folder, kRootPort, kUpstream, "8.0 GT/s PCIe");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"pcie.upstream"});
  const Finding finding = findingOf(folder, "pcie.upstream");
  EXPECT_EQ(finding.what,
            "The PCIe bridges 0000:15:01.0 and 0000:16:00.0 above mlx5_0 are slower "
            "than the NIC.");
}

TEST(CheckPcie, NamesASlotThatIsTooSlowForTheNic) {
  const auto folder = testing::roceNode();
  setSpeed(folder, kPciePort, kNic, "16.0 GT/s PCIe");
  set(folder, kPciePort, "max_link_speed", "16.0 GT/s PCIe");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"pcie.too-slow-for-nic"});
  folder.rewrite("/sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)");
  EXPECT_FALSE(diagnose(folder.node(), Codes{"pcie"}).has("pcie.too-slow-for-nic"))
      << "200 Gb/s fit into PCIe 4 x16";
}

TEST(CheckPcie, FindsFaultsInPairs) {
  const auto folder = testing::roceNode();
  setSpeed(folder, kPciePort, kNic, "8.0 GT/s PCIe");
  setSpeed(folder, kRootPort, kUpstream, "8.0 GT/s PCIe");
  set(folder, kNic, "current_link_width", "8");
  EXPECT_EQ(codesAboveInfo(folder), (Codes{"pcie.speed", "pcie.width", "pcie.upstream"}));
}

TEST(CheckPcie, JudgesAVirtualFunctionByItsPhysicalOne) {
  const auto folder = testing::openShiftAfter();
  setSpeed(folder, "0000:17:00.0", "0000:19:00.0", "8.0 GT/s PCIe");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"pcie.speed"});
  EXPECT_EQ(findingOf(folder, "pcie.speed").what, "The PCIe link of mlx5_6 runs below its speed.");
}

TEST(CheckPcie, DoesNotBelieveBridgesOfAVirtualMachine) {
  const auto folder = testing::p5();
  for (const char* bridge : {"0000:44:01.0", "0000:45:00.0"}) {
    set(folder, bridge, "vendor", "0x1d0f");
    set(folder, bridge, "current_link_speed", "2.5 GT/s PCIe");
  }
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckPcie, NamesAGpuWithFewerLanes) {
  const auto folder = testing::roceNode();
  set(folder, "0000:19:00.0", "current_link_width", "4");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"pcie.width"});
  EXPECT_NE(findingOf(folder, "pcie.width").what.find("GPU 0000:19:00.0"), std::string::npos);
}

TEST(CheckPcie, NamesErrors) {
  auto folder = testing::roceNode();
  set(folder, kNic, "aer_dev_correctable", "RxErr 4\nTOTAL_ERR_COR 4");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "a few come with each boot";
  EXPECT_EQ(findingOf(folder, "pcie.errors").severity, Severity::kInfo);
  folder.live.grown[folder.place("/sys/bus/pci/devices/0000:18:00.0/aer_dev_correctable")] = 3;
  EXPECT_EQ(codesAboveInfo(folder), Codes{"pcie.errors"}) << "they grow";
  EXPECT_EQ(findingOf(folder, "pcie.errors").evidence.at(0).value, "4, 3 more within 1.0 s");
  folder.live.grown.clear();
  set(folder, kRootPort, "aer_dev_fatal", "DLP 1\nTOTAL_ERR_FATAL 1");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"pcie.errors"});
}

TEST(CheckPcie, SaysThatErrorsAreNotCounted) {
  const auto folder = testing::gb200();
  for (const std::string& address : folder.node().tree.list("/sys/bus/pci/devices"))
    for (const char* file : {"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"})
      folder.erase(fmt::format("/sys/bus/pci/devices/{}/{}", address, file));
  EXPECT_EQ(findingOf(folder, "pcie.errors-unseen").severity, Severity::kInfo);
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckPcie, SaysWhereTheKernelDoesNotKnow) {
  const auto folder = testing::roceNode();
  for (const char* text : {"Unknown", "", "nan", "-8 GT/s", "\x01\x02"}) {
    set(folder, kNic, "current_link_speed", text);
    EXPECT_EQ(codesAboveInfo(folder), Codes{}) << text;
    EXPECT_NE(findingOf(folder, "pcie.unknown").what.find(kNic), std::string::npos);
  }
  set(folder, kNic, "current_link_speed", "32.0 GT/s PCIe");
  set(folder, kNic, "current_link_width", "18446744073709551615");
  EXPECT_NE(findingOf(folder, "pcie.unknown").what.find(kNic), std::string::npos);
}

}  // namespace
}  // namespace viaduct::diag
