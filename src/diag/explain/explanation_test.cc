#include "diag/explain/explanation.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "diag/explain/samples_testing.h"

namespace viaduct::diag {
namespace {

constexpr std::string_view kFlushLine = "cq entry: Work Request Flushed Error\n";
constexpr std::string_view kProtectionLine = "cq entry: IBV_WC_LOC_PROT_ERR(4)\n";

LogSummary readText(std::string_view log) {
  LogScanner scanner;
  scanner.feed(log);
  return scanner.finish();
}

OnNode acsOnly(std::string_view finding) {
  if (finding == "iommu.acs-redirect") return OnNode::kFound;
  return finding.starts_with("iommu.") ? OnNode::kNotLooked : OnNode::kNotTheCase;
}

std::string allLines() {
  std::string out;
  for (const LogSample& sample : allSamples()) out.append(sample.line).append("\n");
  return out;
}

TEST(Explanation, FitsEightyColumns) {
  for (const bool on_node : {false, true}) {
    std::istringstream lines(
        explanationText(readText(allLines() + std::string(300, 'x') + std::string(kProtectionLine)),
                        on_node ? NodeRelation(acsOnly) : NodeRelation{}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(Explanation, CausesOfThisNodeComeFirst) {
  EXPECT_EQ(explanationText(readText(kProtectionLine), acsOnly),
            "1 line, 33 B: 1 error\n"
            "\n"
            "ERROR: the NIC was refused access to local memory (log.loc-prot-err)\n"
            "  Line 1:\n"
            "  > cq entry: IBV_WC_LOC_PROT_ERR(4)\n"
            "  A work request names memory that the local NIC must not read or write. No data\n"
            "  moved.\n"
            "  1. PCIe access control (ACS) sends traffic between GPU and NIC to the CPU.\n"
            "     On this node: found (iommu.acs-redirect)\n"
            "     Fix: Clear the redirect bits of each bridge between them at every boot:\n"
            "          setpci -s BRIDGE ECAP_ACS+0x6.w=0000. Or boot with\n"
            "          pci=disable_acs_redir=BRIDGE.\n"
            "  2. The IOMMU translates the addresses of the NIC or the GPU.\n"
            "     On this node: not looked at (iommu.translated)\n"
            "     Fix: Boot with iommu=pt (x86) or iommu.passthrough=1 (arm64). On OpenShift,\n"
            "          set it in a MachineConfig: kernelArguments: [iommu=pt].\n"
            "  3. The NIC cannot reach GPU memory, or the memory was remapped after its\n"
            "     registration.\n"
            "     On this node: not the case (variables.pytorch-cuda-alloc-conf,\n"
            "     gpu.no-peer-memory)\n"
            "     Fix: Try NCCL_NET_GDR_LEVEL=0: if it helps, the GPU path is at fault. Unset\n"
            "          PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and load\n"
            "          nvidia_peermem or use dma-buf.\n");
}

TEST(Explanation, ACauseThatNoCheckDecidesSaysSo) {
  const LogSummary summary = readText("NIXL compatibility hash mismatch");
  EXPECT_NE(explanationText(summary, acsOnly).find("On this node: no check decides it\n"),
            std::string::npos);
  EXPECT_EQ(explanationJson(summary, acsOnly)["texts"][0]["causes"][0]["on_this_node"], "no check");
}

TEST(Explanation, WithoutANodeEachCauseNamesItsChecks) {
  const std::string text = explanationText(readText(kProtectionLine));
  EXPECT_NE(text.find("     Check: iommu.translated, kernel-log.page-faults\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("On this node"), std::string::npos);
}

TEST(Explanation, AFollowUpNamesTheFirstError) {
  const std::string after = explanationText(
      readText(std::string(kProtectionLine) + std::string(kFlushLine) + std::string(kFlushLine)));
  EXPECT_NE(after.find("1 error, 1 follow-up\n"), std::string::npos) << after;
  EXPECT_NE(after.find("2 lines, 2 to 3:\n"), std::string::npos) << after;
  EXPECT_NE(
      after.find("First error in this log: line 1, the NIC was refused access to local memory\n"
                 "  (log.loc-prot-err).\n"),
      std::string::npos)
      << after;
}

TEST(Explanation, AFollowUpWithoutAnErrorBeforePointsToTheOtherRanks) {
  const std::string alone =
      explanationText(readText(std::string(kFlushLine) + std::string(kProtectionLine)));
  EXPECT_NE(alone.find("Look in the logs of the other\n  ranks."), std::string::npos) << alone;
}

TEST(Explanation, ALogWithoutKnownTextsSaysSo) {
  EXPECT_EQ(explanationText(readText("")), "The log is empty.\n");
  EXPECT_EQ(explanationText(readText("a\nb\n")),
            "2 lines, 4 B: no known text. docs/explain.md lists the known texts.\n");
}

TEST(Explanation, JsonHasTheSame) {
  const Json json =
      explanationJson(readText(std::string(kProtectionLine) + std::string(kFlushLine)), acsOnly);
  EXPECT_EQ(json["format"], "viaduct-explain/1");
  EXPECT_EQ(json["lines"], 2);
  ASSERT_EQ(json["texts"].size(), 2U);
  const Json& first = json["texts"][0];
  EXPECT_EQ(first["code"], "log.loc-prot-err");
  EXPECT_EQ(first["kind"], "error");
  EXPECT_EQ(first["first_line"], 1);
  EXPECT_EQ(first["quote"], "cq entry: IBV_WC_LOC_PROT_ERR(4)");
  EXPECT_EQ(first["causes"][0]["on_this_node"], "found");
  EXPECT_EQ(first["causes"][0]["found"], Json::array({"iommu.acs-redirect"}));
  EXPECT_EQ(first["causes"][1]["on_this_node"], "not looked at");
  EXPECT_EQ(json["texts"][1]["first_error"], "log.loc-prot-err");
  EXPECT_FALSE(
      explanationJson(readText(kProtectionLine))["texts"][0]["causes"][0].contains("found"));
}

// A log may contain any bytes, but JSON has to be UTF-8.
TEST(Explanation, JsonOfABinaryLogIsValid) {
  const Json json = explanationJson(readText("\xff\xfe\x80 IBV_WC_LOC_PROT_ERR"));
  EXPECT_EQ(Json::parse(json.dump()), json);
}

}  // namespace
}  // namespace viaduct::diag
