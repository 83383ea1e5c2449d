#include <gtest/gtest.h>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/peer_memory.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;

constexpr auto kClosed =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:02:12 UTC 2025";

TEST(CheckGpu, ReadsTheDriversVersion) {
  EXPECT_EQ(
      driverVersion("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.135  Fri Oct 11 15:06:32"),
      "550.135");
  EXPECT_EQ(driverVersion("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  "
                          "Release Build  (dvs-builder@U22-I3-B03-02)"),
            "580.95.05");
  EXPECT_EQ(driverVersion(""), "");
}

TEST(CheckGpu, NeedsPeerMemoryOrDmaBuf) {
  auto folder = testing::roceNode();
  folder.write("/proc/driver/nvidia/version", kClosed);
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "nvidia_peermem suffices";
  folder.remove("/sys/module/nvidia_peermem");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu.no-peer-memory"});
  folder.write("/proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "dma-buf suffices";
  folder.live.kernel = "5.4.0-200-generic";
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu.no-peer-memory"});
  folder.live.kernel = "";
  folder.write("/proc/sys/kernel/osrelease", "garbage");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu.peer-memory-unknown"});
}

TEST(CheckGpu, SaysWhichOfTheTwoWaysIsMissing) {
  auto folder = testing::roceNode();
  EXPECT_FALSE(diagnose(folder.node()).has("gpu.no-peermem"));
  EXPECT_FALSE(diagnose(folder.node()).has("gpu.no-dma-buf"));
  folder.live.kernel = "5.4.0-200-generic";
  EXPECT_EQ(findingOf(folder, "gpu.no-dma-buf").cause, "dma-buf needs Linux 5.12 or later.");
  folder.live.kernel = "6.8.0";
  folder.write("/proc/driver/nvidia/version", kClosed);
  EXPECT_EQ(findingOf(folder, "gpu.no-dma-buf").severity, Severity::kInfo);
  EXPECT_EQ(findingOf(folder, "gpu.no-dma-buf").cause,
            "The closed kernel modules have no dma-buf.");
  EXPECT_EQ(findingOf(testing::gb200(), "gpu.no-peermem").severity, Severity::kInfo);
  EXPECT_FALSE(diagnose(testing::p5().node()).has("gpu.no-peermem")) << "EFA brings its own";
}

TEST(CheckGpu, CountsThePairsOfGpusThatHaveOnlyPcie) {
  const auto folder = testing::openShiftAfter();
  const Finding finding = findingOf(folder, "gpu.pairs-over-pcie");
  EXPECT_EQ(finding.severity, Severity::kInfo);
  ASSERT_EQ(finding.evidence.size(), 2U);
  EXPECT_EQ(finding.evidence[0].source, "0000:1b:00.0 and 0000:3b:00.0");
  EXPECT_EQ(finding.evidence[0].value, "on one NUMA node, through the CPU: 2 pairs");
  EXPECT_NE(finding.evidence[1].value.find("4 pairs"), std::string::npos);
  for (const auto make : {testing::roceNode, testing::gb200})
    EXPECT_FALSE(diagnose(make().node()).has("gpu.pairs-over-pcie")) << "NVSwitches and NVLink";
}

TEST(CheckGpu, KnowsThatEfaBringsPeerMemory) {
  const auto folder = testing::p5();
  folder.write("/proc/driver/nvidia/version", kClosed);
  folder.remove("/sys/module/nvidia_peermem");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckGpu, NamesASymbolMismatchWhereNothingElseHelps) {
  auto folder = testing::roceNode();
  folder.live.kernel_log->text +=
      "\nnvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client"
      "\nnvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)";
  folder.remove("/sys/module/nvidia_peermem");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "dma-buf suffices";
  EXPECT_EQ(findingOf(folder, "kernel-log.peermem").severity, Severity::kInfo);
  folder.write("/proc/driver/nvidia/version", kClosed);
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu.peermem-symbols"});
}

TEST(CheckGpu, NamesMissingGdrcopyOnEfa) {
  const auto folder = testing::p5();
  folder.remove("/dev/gdrdrv");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "other pods have it";
  folder.remove("/sys/module/gdrdrv");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu.no-gdrcopy"});
}

TEST(CheckGpu, NamesStubsBeforeTheDriver) {
  auto folder = testing::p5();
  folder.variables["LD_LIBRARY_PATH"] = "/opt/amazon/efa/lib:/usr/local/cuda/lib64/stubs";
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu.stub-driver"});
  EXPECT_EQ(findingOf(folder, "gpu.stub-driver").fix, "export LD_LIBRARY_PATH=/opt/amazon/efa/lib");
  EXPECT_EQ(findingOf(folder, "gpu.stub-driver").severity, Severity::kWarning);
  folder.write("/usr/local/cuda/lib64/stubs/libcuda.so.1", "");
  EXPECT_EQ(findingOf(folder, "gpu.stub-driver").severity, Severity::kFailure);
  folder.write("/usr/lib64/libcuda.so.1", "");
  folder.variables["LD_LIBRARY_PATH"] = ":/usr/lib64:/usr/local/cuda/lib64/stubs";
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "the driver's own comes first";
}

TEST(CheckGpu, NamesACompatibilityLibraryOfTheDriversBranch) {
  auto folder = testing::p5();
  folder.variables["LD_LIBRARY_PATH"] = "/usr/local/cuda/compat:/o'; rm -rf /";
  folder.write("/usr/local/cuda/compat/libcuda.so.1", "");
  folder.write("/usr/local/cuda/compat/libcuda.so.580.159.03", "");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu.stub-driver"});
  EXPECT_EQ(findingOf(folder, "gpu.stub-driver").fix, "Remove this folder from LD_LIBRARY_PATH.");
  folder.remove("/usr/local/cuda/compat/libcuda.so.580.159.03");
  folder.write("/usr/local/cuda/compat/libcuda.so.590.10", "");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "that is what the package is for";
}

TEST(CheckGpu, NamesAGpuWithoutANicUnderItsSwitch) {
  const auto folder = testing::roceNode();
  folder.remove("/sys/class/infiniband/mlx5_0");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu.no-near-nic"});
  EXPECT_EQ(findingOf(folder, "gpu.no-near-nic").what,
            "No NIC is under the PCIe switch of GPU 0000:19:00.0.");
}

TEST(CheckGpu, NamesANicOnTheOtherNumaNode) {
  const auto folder = testing::roceNode();
  for (const char* nic : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"})
    folder.remove(std::string("/sys/class/infiniband/") + nic);
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu.far-nic"});
  EXPECT_NE(findingOf(folder, "gpu.far-nic").what.find("0000:19:00.0"), std::string::npos);
}

TEST(CheckGpu, NamesAMissingImexChannelOfAPod) {
  auto folder = testing::gb200();
  folder.remove("/dev/nvidia-caps-imex-channels");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "the host gives channels to containers";
  EXPECT_EQ(findingOf(folder, "gpu.no-imex-channel").severity, Severity::kInfo);
  folder.variables["KUBERNETES_SERVICE_HOST"] = "10.100.0.1";
  EXPECT_EQ(findingOf(folder, "gpu.no-imex-channel").severity, Severity::kWarning);
  folder.remove("/proc/devices");
  EXPECT_EQ(findingOf(folder, "gpu.no-imex-channel").severity, Severity::kUnknown);
  folder.write("/dev/nvidia-caps-imex-channels/channel7", "");
  EXPECT_FALSE(diagnose(folder.node()).has("gpu.no-imex-channel"));
  EXPECT_FALSE(diagnose(testing::roceNode().node()).has("gpu.no-imex-channel"));
}

TEST(CheckGpu, SaysThatAPlatformHasNoSuchSwitches) {
  const auto folder = testing::aksNd();
  EXPECT_EQ(findingOf(folder, "gpu.no-near-nic").severity, Severity::kInfo);
}

}  // namespace
}  // namespace viaduct::diag
