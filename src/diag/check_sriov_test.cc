#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using testing::Fixture;

const std::vector<std::string> kSriov{"sriov"};

// The codes of all findings above info.
std::vector<std::string> sriovFaults(const testing::NodeFolder& folder) {
  std::vector<std::string> out;
  const Findings findings = diagnose(folder.node(), kSriov);
  for (const Finding& one : findings.all())
    if (one.severity > Severity::kInfo) out.push_back(one.code);
  return out;
}

const Finding& sriovFinding(const Findings& findings, std::string_view code) {
  static const Finding kNothing;
  const auto at =
      std::ranges::find_if(findings.all(), [&](const Finding& one) { return one.code == code; });
  return at == findings.all().end() ? kNothing : *at;
}

constexpr auto kRail = "PCIDEVICE_OPENSHIFT_IO_ENO5NP0RDMA";
constexpr auto kRailInfo = "PCIDEVICE_OPENSHIFT_IO_ENO5NP0RDMA_INFO";

TEST(CheckSriov, SaysNothingAboveInfoOfHealthyNodes) {
  for (const testing::HealthyNode& node : testing::healthyNodes()) {
    const Fixture folder = node.make();
    EXPECT_EQ(sriovFaults(folder), std::vector<std::string>()) << node.name;
    const Findings findings = diagnose(folder.node(), kSriov);
    EXPECT_FALSE(findings.fines().empty() && findings.all().empty()) << node.name;
  }
}

TEST(CheckSriov, NamesTheDevicesOfThePod) {
  const Fixture folder = testing::openShiftBefore();
  const Findings findings = diagnose(folder.node(), kSriov);
  ASSERT_FALSE(findings.fines().empty());
  EXPECT_EQ(findings.fines()[0].what.find("This pod was given mlx5_6, mlx5_7, mlx5_10, mlx5_11 ("),
            0U)
      << findings.fines()[0].what;
}

TEST(CheckSriov, FindsADeviceThatIsNotThere) {
  Fixture folder = testing::openShiftAfter();
  folder.variables[kRail] = "0000:19:01.7";
  folder.variables[kRailInfo] = R"({"0000:19:01.7":{"rdma":{"rdma_dev":"mlx5_42"}}})";
  EXPECT_EQ(sriovFaults(folder), std::vector<std::string>{"sriov.no-device"});
}

TEST(CheckSriov, FindsAPhysicalFunctionInAList) {
  Fixture folder = testing::openShiftAfter();
  folder.variables["NCCL_IB_HCA"] = "=mlx5_0,mlx5_7";
  EXPECT_EQ(sriovFaults(folder), std::vector<std::string>{"sriov.physical-listed"});
  const Findings findings = diagnose(folder.node(), kSriov);
  const Finding& found = sriovFinding(findings, "sriov.physical-listed");
  EXPECT_NE(found.what.find("its variables name mlx5_0."), std::string::npos) << found.what;
  EXPECT_NE(found.fix.find("unset NCCL_IB_HCA\n"), std::string::npos) << found.fix;
}

TEST(CheckSriov, FindsAFunctionThatIsKeptDown) {
  const Fixture folder = testing::openShiftAfter();
  folder.rewrite("/sys/class/infiniband/mlx5_6/ports/1/state", "1: DOWN");
  EXPECT_EQ(sriovFaults(folder), std::vector<std::string>{"sriov.link-down"});
  folder.rewrite("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  EXPECT_EQ(testing::codesAboveInfo(folder), std::vector<std::string>{"rdma.port-down"})
      << "the port of its physical function is down";
  folder.erase("/sys/class/infiniband/mlx5_6/node_guid");
  EXPECT_EQ(testing::codesAboveInfo(folder), std::vector<std::string>{"rdma.port-down"});
}

TEST(CheckSriov, LeavesAFunctionOfUnknownStateToTheTopicRdma) {
  const Fixture folder = testing::openShiftAfter();
  folder.rewrite("/sys/class/infiniband/mlx5_6/ports/1/state", "garbage");
  EXPECT_EQ(testing::codesAboveInfo(folder), std::vector<std::string>{"rdma.state-unknown"});
}

TEST(CheckSriov, FindsAnInfinibandFunctionWithoutGuid) {
  const Fixture folder = testing::openShiftAfter();
  const std::string device = "/sys/class/infiniband/mlx5_6";
  folder.rewrite(device + "/ports/1/link_layer", "InfiniBand");
  folder.rewrite(device + "/ports/1/state", "2: INIT");
  folder.rewrite(device + "/node_guid", "0000:0000:0000:0000");
  EXPECT_EQ(sriovFaults(folder), std::vector<std::string>{"sriov.no-guid"});
  const Findings findings = diagnose(folder.node(), kSriov);
  const std::string& fix = sriovFinding(findings, "sriov.no-guid").fix;
  EXPECT_NE(fix.find("echo Follow > /sys/class/infiniband/mlx5_0/device/sriov/1/policy"),
            std::string::npos)
      << fix;
}

TEST(CheckSriov, SaysThatItHadToGuess) {
  Fixture folder = testing::openShiftAfter();
  std::erase_if(folder.variables,
                [](const auto& one) { return one.first.starts_with("PCIDEVICE_"); });
  EXPECT_EQ(sriovFaults(folder), std::vector<std::string>{"sriov.guessed"});
}

TEST(CheckSriov, EachFindingHasAFixAndEvidence) {
  Fixture folder = testing::openShiftAfter();
  folder.variables[kRailInfo] = "{";
  folder.variables["PCIDEVICE_B"] = "0000:ff:00.0,x y";
  const Findings findings = diagnose(folder.node(), kSriov);
  for (const Finding& one : findings.all()) {
    EXPECT_FALSE(one.evidence.empty() || one.fix.empty() || one.cause.empty()) << one.code;
    EXPECT_TRUE(one.what.ends_with('.')) << one.what;
  }
}

}  // namespace
}  // namespace viaduct::diag
