#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using testing::Fixture;
using Codes = std::vector<std::string>;

bool has(const Fixture& folder, const char* code) { return diagnose(folder.node()).has(code); }

void setLibrary(Fixture& folder, const std::string& path, const std::string& version) {
  auto& libraries = folder.live.libraries;
  std::erase_if(libraries, [](const Live::Library& one) { return one.name == "libcuda.so.1"; });
  if (!path.empty()) libraries.push_back({"libcuda.so.1", path, version});
}

void giveGpus(const Fixture& folder, unsigned count) {
  for (unsigned number = count; number < 8; ++number)
    folder.remove("/dev/nvidia" + std::to_string(number));
}

TEST(CheckGpuAccess, ALibraryOfAnotherVersionDoesNotFitTheDriver) {
  auto folder = testing::roceNode();
  setLibrary(folder, "/usr/lib64/libcuda.so.1", "580.159.03");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu-access.driver-mismatch"});
  const Finding finding = findingOf(folder, "gpu-access.driver-mismatch");
  EXPECT_EQ(finding.severity, Severity::kFailure);
  EXPECT_EQ(finding.what, "libcuda 580.159.03 does not fit the loaded driver 580.95.05.");
  setLibrary(folder, "/usr/lib64/libcuda.so.1", "1");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "the name of the file has no version";
}

TEST(CheckGpuAccess, StubsAndCompatibilityLibrariesAreNotTheDriversOwn) {
  auto folder = testing::roceNode();
  setLibrary(folder, "/usr/local/cuda/compat/libcuda.so.1", "590.10");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu-access.no-library"});
  folder.live.libraries.push_back({"libcuda.so.1", "/usr/lib64/libcuda.so.1", "580.95.05"});
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckGpuAccess, SaysWhyThereIsNoLibrary) {
  auto folder = testing::p5();
  setLibrary(folder, "", "");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu-access.no-library"});
  EXPECT_NE(findingOf(folder, "gpu-access.no-library").fix.find("--gpus"), std::string::npos);
  folder.variables["NVIDIA_DRIVER_CAPABILITIES"] = "utility";
  EXPECT_EQ(findingOf(folder, "gpu-access.no-library").fix,
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
  folder.live.libraries.clear();
  EXPECT_EQ(findingOf(folder, "gpu-access.library-unknown").severity, Severity::kUnknown);
}

TEST(CheckGpuAccess, NamesADriverOlderThanCuda11) {
  auto folder = testing::roceNode();
  folder.write("/proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX x86_64 Kernel Module  440.100  Fri May 29 2020");
  setLibrary(folder, "/usr/lib64/libcuda.so.1", "440.100");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu-access.driver-old"});
}

TEST(CheckGpuAccess, NamesMissingDeviceFiles) {
  const auto folder = testing::p5();
  folder.remove("/dev/nvidia-uvm");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu-access.no-device-files"});
  EXPECT_NE(findingOf(folder, "gpu-access.no-device-files").what.find("/dev/nvidia-uvm"),
            std::string::npos);
}

TEST(CheckGpuAccess, AContainerWithoutGpusIsNoFault) {
  const auto folder = testing::p5();
  folder.remove("/dev/nvidia-uvm");
  folder.remove("/dev/nvidiactl");
  giveGpus(folder, 0);
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  EXPECT_EQ(findingOf(folder, "gpu-access.no-gpu").what,
            "None of the node's 8 GPUs has a device file here.");
  folder.remove("/proc/driver/nvidia/gpus");
  EXPECT_TRUE(has(folder, "gpu-access.no-gpu")) << "the runtime shows only given GPUs";
}

TEST(CheckGpuAccess, CountsTheGpusThatTheProcessSees) {
  auto folder = testing::p5();
  EXPECT_FALSE(has(folder, "gpu-access.hidden-gpus"));
  folder.variables["CUDA_VISIBLE_DEVICES"] = "3,1";
  EXPECT_EQ(findingOf(folder, "gpu-access.hidden-gpus").what,
            "This process sees 2 of the node's 8 GPUs.");
  folder.variables["CUDA_VISIBLE_DEVICES"] = "GPU-7c2e1f04";
  EXPECT_EQ(findingOf(folder, "gpu-access.hidden-gpus").what,
            "This process sees 1 of the node's 8 GPUs.");
  folder.variables["CUDA_VISIBLE_DEVICES"] = "-1";
  EXPECT_EQ(findingOf(folder, "gpu-access.hidden-gpus").what,
            "This process sees 0 of the node's 8 GPUs.");
  folder.variables.erase("CUDA_VISIBLE_DEVICES");
  giveGpus(folder, 5);
  EXPECT_EQ(findingOf(folder, "gpu-access.hidden-gpus").what,
            "This process sees 5 of the node's 8 GPUs.");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckGpuAccess, NamesAVisibleDeviceThatIsNotThere) {
  auto folder = testing::p5();
  giveGpus(folder, 2);
  folder.variables["CUDA_VISIBLE_DEVICES"] = "0,2";
  EXPECT_EQ(codesAboveInfo(folder), Codes{"gpu-access.visible-devices"});
  EXPECT_EQ(findingOf(folder, "gpu-access.visible-devices").what,
            "CUDA_VISIBLE_DEVICES names GPU 2, and there are 2 GPUs here.");
}

TEST(CheckGpuAccess, NamesTheNamespacesOfAContainer) {
  auto folder = testing::p5();
  EXPECT_EQ(findingOf(folder, "gpu-access.own-namespaces").what,
            "CUDA IPC does not reach other containers: this one has its own namespaces of IPC and "
            "of processes.");
  folder.live.ipc_namespace = 0xefffffff;
  EXPECT_EQ(findingOf(folder, "gpu-access.own-namespaces").what,
            "CUDA IPC does not reach other containers: this one has its own namespace of "
            "processes.");
  folder.live.pid_namespace = 0xeffffffc;
  EXPECT_FALSE(has(folder, "gpu-access.own-namespaces"));
  EXPECT_FALSE(has(testing::roceNode(), "gpu-access.own-namespaces"));
}

TEST(CheckGpuAccess, NamesGpusThatMigDivides) {
  const auto folder = testing::roceNode();
  folder.write("/proc/driver/nvidia/capabilities/gpu2/mig/config", "");
  EXPECT_FALSE(has(folder, "gpu-access.mig"));
  folder.write("/proc/driver/nvidia/capabilities/gpu2/mig/gi1/access", "DeviceFileMinor: 12");
  folder.write("/proc/driver/nvidia/capabilities/gpu2/mig/gi2/access", "DeviceFileMinor: 21");
  const Finding finding = findingOf(folder, "gpu-access.mig");
  EXPECT_EQ(finding.what,
            "MIG divides GPU 2: it has no P2P, and no CUDA IPC between its instances.");
  EXPECT_EQ(finding.evidence.at(0).value, "2 instances");
}

TEST(CheckGpuAccess, LeavesANodeWithoutDriverToTheTopicGpu) {
  const auto folder = testing::roceNode();
  folder.remove("/proc/driver/nvidia");
  const Findings findings = diagnose(folder.node(), Codes{"gpu-access"});
  EXPECT_TRUE(findings.all().empty());
  EXPECT_EQ(findings.fines().size(), 1U);
}

}  // namespace
}  // namespace viaduct::diag
