#include <gtest/gtest.h>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/kernel_log.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;
using Functions = std::set<std::string>;

TEST(KernelLogText, HasFaultsOfThreeKindsOfIommu) {
  const KernelLog log = readKernelLog(
      "[  102.431] AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:c1:00.0 domain=0x002e "
      "address=0xfe000000 flags=0x0020]\n"
      "DMAR: [DMA Write NO_PASID] Request device [18:00.0] fault addr 0xffe00000 [fault reason "
      "0x05] PTE Write access is not set\n"
      "arm-smmu-v3 arm-smmu-v3.0.auto: event 0x10 received:");
  EXPECT_EQ(log.page_faults.count, 3U);
  EXPECT_EQ(log.page_faults.functions, (Functions{"0000:18:00.0", "0000:c1:00.0"}));
  EXPECT_TRUE(log.page_faults.first.starts_with("[  102.431] AMD-Vi"));
}

TEST(KernelLogText, TellsCorrectedErrorsFromOthers) {
  const KernelLog log = readKernelLog(
      "pcieport 0000:15:01.0: AER: Corrected error message received from 0000:18:00.0\n"
      "mlx5_core 0000:18:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer\n"
      "nvme 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction\n"
      "mlx5_core 0000:18:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 "
      "link at 0000:16:00.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)");
  EXPECT_EQ(log.pcie_corrected.functions, Functions{"0000:18:00.0"});
  EXPECT_EQ(log.pcie_uncorrected.functions, Functions{"0000:3b:00.0"});
  EXPECT_EQ(log.pcie_limited.functions, (Functions{"0000:16:00.0", "0000:18:00.0"}));
}

TEST(KernelLogText, TakesAnything) {
  EXPECT_EQ(readKernelLog("").page_faults.count, 0U);
  EXPECT_EQ(readKernelLog(std::string(1U << 20U, ':')).page_faults.count, 0U);
  EXPECT_EQ(readKernelLog("IO_PAGE_FAULT device=0000:c1: ....").page_faults.functions.size(), 0U);
}

TEST(CheckKernelLog, NamesPageFaultsOfItsDevices) {
  auto folder = testing::roceNode();
  const std::string log = folder.live.kernel_log->text;
  folder.live.kernel_log->text =
      log + "\nDMAR: [DMA Write NO_PASID] Request device [18:00.0] fault addr 0xffe00000";
  EXPECT_EQ(codesAboveInfo(folder), Codes{"kernel-log.page-faults"});
  EXPECT_EQ(findingOf(folder, "kernel-log.page-faults").severity, Severity::kFailure);
  folder.live.kernel_log->text =
      log + "\nDMAR: [DMA Write NO_PASID] Request device [00:02.0] fault addr 0xffe00000";
  EXPECT_EQ(findingOf(folder, "kernel-log.page-faults").severity, Severity::kWarning);
}

TEST(CheckKernelLog, NamesPcieErrorsOfItsDevices) {
  auto folder = testing::roceNode();
  const std::string log = folder.live.kernel_log->text;
  folder.live.kernel_log->text =
      log + "\nmlx5_core 0000:18:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer";
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "one, while the link trained";
  folder.live.kernel_log->text =
      log + "\nmlx5_core 0000:18:00.0: PCIe Bus Error: severity=Uncorrected (Fatal)";
  EXPECT_EQ(codesAboveInfo(folder), Codes{"kernel-log.pcie-errors"});
  folder.live.kernel_log->text =
      log + "\nnvme 0000:f3:00.0: PCIe Bus Error: severity=Uncorrected (Fatal)";
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "a disk";
}

TEST(CheckKernelLog, SaysThatItCouldNotRead) {
  const auto folder = testing::laptop();
  const Finding finding = findingOf(folder, "kernel-log.denied");
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_EQ(finding.evidence.at(0).value, "Operation not permitted");
  EXPECT_EQ(finding.evidence.at(1).value, "1");
}

}  // namespace
}  // namespace viaduct::diag
