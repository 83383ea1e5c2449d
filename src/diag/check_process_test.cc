// Tests of small topics (CPU, clock, names, Kubernetes), of rules for several topics, and of the
// facts about this process.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/process_facts.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;

void setPolicy(const testing::Fixture& folder, const std::string& governor,
               const std::string& driver, const std::string& preference) {
  const std::string at = "/sys/devices/system/cpu/cpu3/cpufreq/";
  folder.write(at + "scaling_governor", governor);
  folder.write(at + "scaling_driver", driver);
  folder.write(at + "energy_performance_preference", preference);
}

TEST(CheckCpu, NamesAGovernorThatSavesPower) {
  const auto folder = testing::roceNode();
  setPolicy(folder, "powersave", "acpi-cpufreq", "");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"cpu.governor"});
  EXPECT_EQ(findingOf(folder, "cpu.governor").what,
            "The frequency governor powersave is in use (1 CPUs).");
  setPolicy(folder, "powersave", "intel_pstate", "balance_performance");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "the hardware chooses";
  EXPECT_EQ(findingOf(folder, "cpu.governor").severity, Severity::kInfo);
  setPolicy(folder, "powersave", "intel_pstate", "power");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"cpu.governor"});
}

TEST(CheckClock, NamesAClockThatIsNotSynchronized) {
  auto folder = testing::roceNode();
  folder.live.clock = Tried{.ok = false, .text = "TIME_ERROR"};
  EXPECT_EQ(codesAboveInfo(folder), Codes{"clock.unsynchronized"});
  folder.live.clock.reset();
  EXPECT_EQ(codesAboveInfo(folder), Codes{"clock.unknown"});
}

TEST(CheckNames, ReportsNamesThatDoNotResolve) {
  auto folder = testing::p5();
  folder.write("/etc/resolv.conf", "# a comment\nnameserver 10.100.0.10\nsearch default.svc");
  folder.live.names["etcd.nowhere"] = Tried{.ok = false, .text = "Name or service not known"};
  EXPECT_EQ(codesAboveInfo(folder), Codes{"names.unresolved"});
  const Finding finding = findingOf(folder, "names.unresolved");
  EXPECT_EQ(finding.evidence.at(0).value, "Name or service not known");
  EXPECT_EQ(finding.evidence.at(1).value, "nameserver 10.100.0.10; search default.svc");
  EXPECT_NE(finding.fix.find("publishNotReadyAddresses"), std::string::npos);
}

TEST(CheckKubernetes, ListsTheDevicesOfThePod) {
  const auto folder = testing::openShiftAfter();
  const Finding pod = findingOf(folder, "kubernetes.pod");
  EXPECT_EQ(pod.what, "This is a Kubernetes pod of namespace inference.");
  EXPECT_EQ(pod.severity, Severity::kInfo);
  EXPECT_EQ(findingOf(folder, "kubernetes.privileged").severity, Severity::kInfo);
  EXPECT_FALSE(diagnose(testing::laptop().node()).has("kubernetes.pod"));
}

// These topics only read the node's files. The clock and the names come from live tests.
TEST(Topics, CallNothingFineWhereThereIsNoFile) {
  testing::NodeFolder folder;
  folder.remove("/sys");
  folder.remove("/proc");
  folder.live = {};
  const Codes topics{"iommu", "pcie", "gpu",       "limits",    "memory",
                     "copy",  "cpu",  "libraries", "kernel-log"};
  const Findings findings = diagnose(folder.node(), topics);
  for (const Fine& one : findings.fines()) ADD_FAILURE() << one.topic << ": " << one.what;
}

TEST(Topics, SayOnceThatThereIsNoSys) {
  const auto folder = testing::roceNode();
  folder.erase("/sys");
  const Findings findings = diagnose(folder.node());
  EXPECT_EQ(std::ranges::count_if(findings.all(),
                                  [](const Finding& one) { return one.code.ends_with("no-sys"); }),
            1);
  const Finding finding = findingOf(folder, "files.no-sys");
  EXPECT_EQ(finding.severity, Severity::kUnknown);
  for (const Topic& topic : topics()) {
    if (!topic.needs_sys) continue;
    const std::string name(topic.name);
    EXPECT_NE(finding.what.find(name), std::string::npos) << name;
    const Findings alone = diagnose(folder.node(), Codes{name});
    EXPECT_TRUE(alone.has("files.no-sys") && alone.fines().empty()) << name;
  }
}

TEST(ProcessFacts, DamagedFilesLeaveFactsEmpty) {
  const testing::NodeFolder folder;
  for (const char* text : {"", "Uid:", "CapEff:\nCapBnd:\tzz", "Uid:\t1\nCapEff", "\x01"}) {
    folder.write("/proc/self/status", text);
    const ProcessFacts facts = processFacts(folder.node());
    EXPECT_FALSE(facts.has(Capability::kIpcLock) || facts.seccomp) << text;
    EXPECT_FALSE(facts.effective) << text;
  }
  for (const char* text : {"", "six", "6", ".8", "6.", "99999999999.1"}) {
    Node node = folder.node();
    node.live.kernel = text;
    EXPECT_FALSE(kernelVersion(node)) << text;
  }
}

}  // namespace
}  // namespace viaduct::diag
