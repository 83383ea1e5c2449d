#include <fmt/format.h>
#include <gtest/gtest.h>

#include "diag/config_space_testing.h"
#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;

void setType(const testing::Fixture& folder, int group, const char* type) {
  folder.write(fmt::format("/sys/kernel/iommu_groups/{}/type", group), type);
}

TEST(CheckIommu, NamesTranslatedFunctionsAndTheManifestOfOpenShift) {
  const auto folder = testing::openShiftBefore();
  const Finding finding = findingOf(folder, "iommu.translated");
  EXPECT_EQ(finding.severity, Severity::kFailure);
  EXPECT_NE(finding.what.find("mlx5_6"), std::string::npos) << finding.what;
  EXPECT_EQ(finding.what.find("mlx5_4"), std::string::npos) << "not of this pod: " << finding.what;
  EXPECT_NE(finding.fix.find("99-worker-iommu-passthrough"), std::string::npos) << finding.fix;
  EXPECT_EQ(codesAboveInfo(folder), (Codes{"iommu.translated", "limits.ipc-lock-inert"}));
}

TEST(CheckIommu, NamesATranslatedPhysicalFunctionAsSlower) {
  const auto folder = testing::roceNode();
  folder.write("/proc/cmdline", "ro intel_iommu=on");
  setType(folder, 20, "DMA-FQ");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"iommu.translated"});
  const Finding finding = findingOf(folder, "iommu.translated");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(finding.evidence.at(0).source, "/sys/kernel/iommu_groups/20/type");
  EXPECT_EQ(finding.evidence.at(0).value, "DMA-FQ (mlx5_0)");
}

TEST(CheckIommu, BelievesTheGroupMoreThanTheCommandLine) {
  const auto folder = testing::roceNode();
  setType(folder, 20, "DMA-FQ");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"iommu.not-in-force"});
  EXPECT_NE(findingOf(folder, "iommu.not-in-force").fix.find("for a in 0000:18:00.0; do"),
            std::string::npos);
  folder.write("/proc/cmdline", "ro iommu=pt iommu.passthrough=0");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"iommu.translated"}) << "the last word counts";
}

TEST(CheckIommu, KnowsThatArmIgnoresPt) {
  const auto folder = testing::gb200();
  folder.write("/proc/cmdline", "ro iommu=pt");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "the groups are right";
  for (int group = 10; group < 14; ++group) setType(folder, group, "DMA");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"iommu.pt-on-arm"});
  EXPECT_NE(findingOf(folder, "iommu.pt-on-arm").fix.find("iommu.passthrough=1"),
            std::string::npos);
}

TEST(CheckIommu, NamesMemoryEncryption) {
  auto folder = testing::roceNode();
  setType(folder, 20, "DMA-FQ");
  folder.live.kernel_log->text +=
      "\niommu: Memory encryption detected - Disabling default IOMMU Passthrough";
  EXPECT_EQ(codesAboveInfo(folder), Codes{"iommu.memory-encryption"});
  folder.live.kernel_log.reset();
  folder.write("/proc/cmdline", "ro mem_encrypt=on");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"iommu.memory-encryption"});
}

TEST(CheckIommu, DoesNotTakeAnUnknownTypeForPassthrough) {
  const auto folder = testing::roceNode();
  for (const char* type : {"", "garbage\x01"}) {
    setType(folder, 20, type);
    EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "the command line asks for passthrough";
    folder.write("/proc/cmdline", "ro");
    EXPECT_EQ(codesAboveInfo(folder), Codes{"iommu.type-unknown"});
    folder.write("/proc/cmdline", "ro iommu=pt");
  }
}

TEST(CheckIommu, NamesBridgesThatRedirect) {
  const auto folder = testing::roceNode();
  const auto acs = [&](const char* bridge, std::uint16_t control) {
    const std::string text = testing::configSpace({{0x0001, 0x140, 0}, {0x000d, 0, control}});
    folder.rewrite(fmt::format("/sys/bus/pci/devices/{}/config", bridge), text);
  };
  acs("0000:15:01.0", 0x1d);  // above both functions, so their traffic does not pass it
  acs("0000:17:00.0", 0x01);
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  EXPECT_NE(findingOf(folder, "iommu.acs-unseen").fix, "") << "no other bridge shows its ACS";
  acs("0000:17:01.0", 0x1d);
  EXPECT_EQ(codesAboveInfo(folder), Codes{"iommu.acs-redirect"});
  const Finding finding = findingOf(folder, "iommu.acs-redirect");
  EXPECT_NE(finding.fix.find("setpci -s 0000:17:01.0 ECAP_ACS+0x6.w=0000\n"), std::string::npos);
  EXPECT_EQ(finding.fix.find("0000:17:00.0"), std::string::npos);
}

// Two GPUs below one switch, without a NIC.
class TwoGpus {
 public:
  TwoGpus() {
    for (const char* port : {"1", "2"}) {
      folder.addPci(
          {.address = std::string("0000:0") + (*port == '1' ? "4" : "5") + ":00.0",
           .bridge = "pci0000:00",
           .above = {"0000:00:01.0", "0000:02:00.0", std::string("0000:03:0") + port + ".0"},
           .vendor = "0x10de",
           .kind = "0x030000",
           .group = *port - '0',
           .group_type = "identity"});
      acs(std::string("0000:03:0") + port + ".0", 0);
    }
  }
  void acs(const std::string& bridge, std::uint16_t control) const {
    const std::string place = folder.node().tree.resolve("/sys/bus/pci/devices/" + bridge);
    folder.write(place + "/config",
                 testing::configSpace({{0x0001, 0x140, 0}, {0x000d, 0, control}}));
  }
  Findings findings() const { return diagnose(folder.node(), Codes{"iommu"}); }
  testing::NodeFolder folder;
};

TEST(CheckIommu, LooksAtGpusThatMeetOnPcieWithoutANic) {
  TwoGpus node;
  EXPECT_EQ(node.findings().worst(), Severity::kInfo);
  node.acs("0000:03:02.0", 0x1d);
  const Finding redirect = node.findings().all().at(0);
  EXPECT_EQ(redirect.code, "iommu.acs-redirect");
  EXPECT_EQ(redirect.what, "ACS sends traffic between GPUs up to the CPU at 0000:03:02.0.");
  EXPECT_EQ(redirect.gain, "GPUs exchange data inside the PCIe switch.");
  node.folder.write("/sys/kernel/iommu_groups/1/type", "DMA-FQ");
  const Finding translated = node.findings().all().at(0);
  EXPECT_EQ(translated.code, "iommu.translated");
  EXPECT_EQ(translated.severity, Severity::kWarning);
  EXPECT_NE(translated.gain.find("Copies between GPUs"), std::string::npos) << translated.gain;
}

TEST(CheckIommu, DoesNotCareAboutGpusThatDoNotMeetOnPcie) {
  TwoGpus node;
  node.acs("0000:03:02.0", 0x1d);
  node.folder.addPci(
      {.address = "0000:08:00.0", .bridge = "pci0000:00", .vendor = "0x10de", .kind = "0x068000"});
  EXPECT_TRUE(node.findings().all().empty()) << "an NVSwitch joins them";
}

}  // namespace
}  // namespace viaduct::diag
