#include "diag/nodes.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace viaduct::diag {
namespace {

NodeResult node(const std::string& name, std::vector<Finding> findings,
                std::vector<NodeFact> facts = {}) {
  Diagnosis out{.node = {name, "6.1.0", "x86_64"}, .facts = std::move(facts)};
  out.findings.begin("rdma");
  for (Finding& one : findings) out.findings.add(std::move(one));
  return {.name = name, .diagnosis = std::move(out)};
}

const Finding kTranslated{.severity = Severity::kFailure,
                          .code = "iommu.translated",
                          .what = "The IOMMU translates.",
                          .fix = "iommu=pt"};
const Finding kGovernor{.severity = Severity::kWarning, .code = "cpu.governor", .what = "Slow."};

using Nodes = std::vector<std::size_t>;

TEST(Nodes, FindingsAreGroupedTheWorstAndTheMostFrequentFirst) {
  Finding other = kTranslated;
  other.what = "The IOMMU translates the DMA of mlx5_7.";
  const Finding rare{.severity = Severity::kFailure, .code = "rdma.port-down", .what = "Down."};
  const std::vector<NodeResult> results{node("a", {kGovernor, other}),
                                        node("b", {kGovernor, kTranslated}),
                                        node("c", {kGovernor, kTranslated, rare}),
                                        {.name = "silent"}};
  const auto groups = groupsOf(results);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].code, "iommu.translated");
  EXPECT_EQ(groups[0].nodes, (Nodes{0, 1, 2}));
  ASSERT_EQ(groups[0].variants.size(), 2U);
  EXPECT_EQ(groups[0].variants[0].finding.what, kTranslated.what);
  EXPECT_EQ(groups[0].variants[0].nodes, (Nodes{1, 2}));
  EXPECT_EQ(groups[0].variants[1].nodes, (Nodes{0}));
  EXPECT_EQ(groups[1].code, "rdma.port-down");
  EXPECT_EQ(groups[2].code, "cpu.governor");
}

TEST(Nodes, ANodeWithACodeTwiceIsCountedOnce) {
  Finding second = kGovernor;
  second.what = "Slow as well.";
  const std::vector<NodeResult> results{node("a", {kGovernor, second, kGovernor})};
  const auto groups = groupsOf(results);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].nodes, (Nodes{0}));
  EXPECT_EQ(groups[0].variants[0].nodes, (Nodes{0}));
}

TEST(Nodes, DifferencesBeginWithTheUsualValue) {
  const std::vector<NodeResult> results{
      node("a", {},
           {{"host", "a"},
            {"kernel", "6.1"},
            {"RDMA device", "mlx5_0 MT4129, firmware 28"},
            {"interface", "eth0: up, MTU 9000 bytes, 10.0.0.1/24 fd00::1/64"}}),
      node("b", {},
           {{"host", "b"},
            {"kernel", "5.14"},
            {"RDMA device", "mlx5_0 MT4129, firmware 26"},
            {"interface", "eth0: up, MTU 9000 bytes, 10.0.0.2/24"}}),
      node("c", {},
           {{"host", "c"},
            {"kernel", "6.1"},
            {"interface", "eth0: up, MTU 9000 bytes, 10.0.0.3/24"},
            {"interface", "veth7: up, MTU 1500 bytes"}})};
  const auto found = differencesOf(results);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].item, "RDMA device mlx5_0");
  ASSERT_EQ(found[0].values.size(), 3U);
  bool lacks = false;
  for (const auto& [value, nodes] : found[0].values)
    if (!value) lacks = nodes == Nodes{2};
  EXPECT_TRUE(lacks) << "a node without the device";
  EXPECT_EQ(found[1].item, "kernel");
  EXPECT_EQ(found[1].values[0], (std::pair(std::optional<std::string>("6.1"), Nodes{0, 2})));
  EXPECT_EQ(found[1].values[1], (std::pair(std::optional<std::string>("5.14"), Nodes{1})));
}

TEST(Nodes, ExpectedNodesWithoutAResultAreSilent) {
  std::vector<NodeResult> results{node("node-1.example.org", {}), node("node-10", {})};
  addSilent(nodeNamesIn("node/node-1\nnode-10,node-2 node/node-3.example.org\n"), results);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[2].name, "node-2");
  EXPECT_FALSE(results[2].diagnosis);
  EXPECT_EQ(results[3].name, "node-3.example.org");
  EXPECT_FALSE(isSameHost("node-1", "node-10"));
  EXPECT_FALSE(isSameHost("", "node-1"));
}

std::string jsonOf(const NodeResult& result) {
  return base::dumpJson(asJson(*result.diagnosis), 2);
}

TEST(Nodes, TheLastWholeDiagnosisOfALogCounts) {
  const NodeResult brace =
      node("first", {{.code = "odd", .what = "A } and a \\\" and \"quotes\"."}});
  const std::string log = "viaduct doctor\n{ noise\n" + jsonOf(brace) + "\nmore {}\n" +
                          jsonOf(node("second", {kGovernor}, {{"kernel", "6.1"}})) + "\nend\n";
  const auto found = lastDiagnosisIn(log);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->node.hostname, "second");
  ASSERT_EQ(found->facts.size(), 1U);
  EXPECT_EQ(lastDiagnosisIn(jsonOf(brace))->findings.all()[0].what,
            "A } and a \\\" and \"quotes\".");
}

TEST(Nodes, ATextWithoutADiagnosisSaysWhy) {
  const std::string whole = jsonOf(node("a", {kGovernor}));
  const auto why = [](const std::string& text) { return lastDiagnosisIn(text).error().text(); };
  EXPECT_NE(why("").find("it is empty"), std::string::npos);
  EXPECT_NE(why("Permission denied\n").find("no output of `viaduct doctor --json`"),
            std::string::npos);
  EXPECT_NE(why(whole.substr(0, whole.size() / 2)).find("ends within a diagnosis"),
            std::string::npos);
  std::string other = whole;
  other.replace(other.find("viaduct-doctor/1"), 16, "viaduct-doctor/9");
  EXPECT_NE(why(other).find("viaduct-doctor/9"), std::string::npos) << why(other);
  EXPECT_NE(why(std::string(kMostNodeBytes + 1, ' ')).find("16 MiB"), std::string::npos);
  EXPECT_NE(why(std::string(1000, '{') + "\"format\": \"viaduct-doctor/1\"").find("ends within"),
            std::string::npos);
}

}  // namespace
}  // namespace viaduct::diag
