// Runs all topics on whole healthy nodes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "diag/fixtures_testing.h"
#include "diag/hardware.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

std::string said(const Finding& finding) {
  return fmt::format("{} {}: {}", severityName(finding.severity), finding.code, finding.what);
}

TEST(HealthyNodes, GetNothingAboveInfoAndHearSomethingOfEachTopic) {
  for (const auto& [name, make] : testing::healthyNodes()) {
    const auto folder = make();
    const Findings findings = diagnose(folder.node());
    for (const Finding& finding : findings.all())
      EXPECT_EQ(finding.severity, Severity::kInfo) << name << ": " << said(finding);
    for (const Topic& topic : topics()) {
      const auto of_it = [&](const auto& one) { return one.topic == topic.name; };
      EXPECT_TRUE(std::ranges::any_of(findings.all(), of_it) ||
                  std::ranges::any_of(findings.fines(), of_it))
          << name << ": " << topic.name;
    }
  }
}

// A DaemonSet's pod has no devices, no capabilities and a small memlock limit.
TEST(HealthyNodes, HaveNoFaultBecauseOfThePodThatDiagnosesThemForAllPods) {
  for (const auto& [name, make] : testing::healthyNodes()) {
    auto folder = make();
    folder.variables = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"NCCL_IB_DISABLE", "1"}};
    folder.remove("/dev/infiniband");
    folder.write("/proc/self/limits", "Max locked memory 8388608 8388608 bytes\n");
    Node node = folder.node();
    const Findings own = diagnose(node);
    const bool fails = std::ranges::any_of(
        own.all(), [](const auto& one) { return one.severity == Severity::kFailure; });
    EXPECT_EQ(fails, !rdmaDevices(node.tree).empty()) << name;
    node.for_all_pods = true;
    const Findings findings = diagnose(node);
    for (const Finding& finding : findings.all())
      EXPECT_EQ(finding.severity, Severity::kInfo) << name << ": " << said(finding);
  }
}

struct Counts {
  std::size_t devices = 0, efa = 0, virtual_functions = 0, gpus = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};
void PrintTo(const Counts& counts, std::ostream* out) {
  *out << fmt::format("{} devices, {} EFA, {} virtual, {} GPUs", counts.devices, counts.efa,
                      counts.virtual_functions, counts.gpus);
}

Counts countsOf(const Node& node) {
  Counts out;
  for (const RdmaDevice& device : rdmaDevices(node.tree)) {
    ++out.devices;
    out.efa += device.efa() ? 1U : 0U;
    out.virtual_functions += device.physical.empty() ? 0U : 1U;
    EXPECT_FALSE(device.uverbs.empty()) << device.name;
    EXPECT_TRUE(device.ports.size() == 1 && device.ports[0].active()) << device.name;
  }
  for (const PciFunction& function : pciFunctions(node.tree))
    out.gpus += function.vendor == 0x10de && (function.kind >> 16U) == 0x03 ? 1U : 0U;
  EXPECT_EQ(countNvidiaGpus(node.tree), out.gpus);
  EXPECT_TRUE(node.tree.unread().empty());
  return out;
}

TEST(Fixtures, HaveTheDevicesOfTheirMachines) {
  using namespace testing;
  EXPECT_EQ(countsOf(p5().node()), (Counts{32, 32, 0, 8}));
  EXPECT_EQ(countsOf(p5en().node()), (Counts{16, 16, 0, 8}));
  EXPECT_EQ(countsOf(p6b200().node()), (Counts{10, 8, 0, 8}));
  EXPECT_EQ(countsOf(openShiftBefore().node()), (Counts{20, 0, 16, 4}));
  EXPECT_EQ(countsOf(openShiftAfter().node()), (Counts{20, 0, 16, 4}));
  EXPECT_EQ(countsOf(aksNd().node()), (Counts{9, 0, 0, 8}));
  EXPECT_EQ(countsOf(roceNode().node()), (Counts{8, 0, 0, 8}));
  EXPECT_EQ(countsOf(gb200().node()), (Counts{4, 0, 0, 4}));
  EXPECT_EQ(countsOf(laptop().node()), Counts{});
  EXPECT_EQ(countsOf(smallVm().node()), Counts{});
}

TEST(Fixtures, GiveThePodTheNodesThatItsVariablesName) {
  const auto folder = testing::openShiftBefore();
  const Node node = folder.node();
  EXPECT_EQ(node.tree.list("/dev/infiniband").size(), 5U) << "four devices and rdma_cm";
  unsigned given = 0;
  for (RdmaDevice& device : rdmaDevices(node.tree)) {
    if (device.interfaces.empty()) continue;
    ++given;
    readGids(node.tree, device);
    EXPECT_TRUE(node.tree.has("/dev/infiniband/" + device.uverbs)) << device.name;
    EXPECT_EQ(device.ports.at(0).gids.at(3).type, "RoCE v2");
  }
  EXPECT_EQ(given, 4U);
}

TEST(Fixtures, ReplaceAFileThatLinksLeadTo) {
  const auto folder = testing::gb200();
  folder.rewrite("/sys/class/infiniband/mlx5_3/ports/1/rate", "100 Gb/sec (1X NDR)");
  folder.erase("/sys/class/infiniband/mlx5_3/ports/1/state");
  const auto devices = rdmaDevices(folder.node().tree);
  EXPECT_EQ(devices.at(3).ports.at(0).lanes, 1U);
  EXPECT_EQ(devices.at(3).ports.at(0).state, "");
}

}  // namespace
}  // namespace viaduct::diag
