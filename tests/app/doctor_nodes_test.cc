// `viaduct doctor nodes` as users run it, and its page in a browser if there is one.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "app/browser.h"
#include "app/program.h"
#include "base/json.h"
#include "diag/diagnosis.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using diag::Finding;
using diag::Severity;

constexpr std::size_t kNodes = 64;

std::string contentOf(const std::string& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

class DoctorNodes : public ::testing::Test {
 protected:
  DoctorNodes()
      : folder_(::testing::TempDir() + "viaduct_nodes_" + std::to_string(::getpid()) + "/") {
    std::filesystem::create_directories(folder_);
  }
  ~DoctorNodes() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + name) << content;
    return folder_ + name;
  }
  std::string result(const std::string& name, const std::vector<Finding>& findings,
                     const std::string& firmware = "28.39.1002") const {
    diag::Diagnosis node{.node = {name, "6.1.0-32-amd64", "x86_64"},
                         .facts = {{"host", name},
                                   {"kernel", "6.1.0-32-amd64"},
                                   {"RDMA device", "mlx5_0 MT4129, firmware " + firmware}}};
    node.findings.begin("iommu");
    for (const Finding& one : findings) node.findings.add(one);
    return file(name + ".json", base::dumpJson(diag::asJson(node), 2));
  }
  // 11 nodes whose IOMMU translates, 5 with a slow processor, one that was cut off; the others are
  // in order.
  std::vector<std::string> cluster() const {
    const auto translated = [](std::size_t node) {
      return Finding{.severity = Severity::kFailure,
                     .code = "iommu.translated",
                     .what = node == 3 ? "The IOMMU translates the DMA of mlx5_7."
                                       : "The IOMMU translates the DMA of <b>mlx5_0</b> & mlx5_1.",
                     .evidence = {{"/sys/kernel/iommu_groups/101/type", "DMA-FQ"}},
                     .cause = "The kernel translates DMA addresses unless it is told otherwise.",
                     .fix =
                         "oc apply -f - <<'EOF'\napiVersion: machineconfiguration.openshift.io/"
                         "v1\nkind: MachineConfig\nspec: {kernelArguments: [iommu=pt]}\nEOF",
                     .gain = "RDMA between NIC and GPU works."};
    };
    const Finding slow{.severity = Severity::kWarning,
                       .code = "cpu.governor",
                       .what = "The governor is powersave.",
                       .fix = "cpupower frequency-set -g performance"};
    std::vector<std::string> out;
    for (std::size_t i = 0; i < kNodes - 2; ++i) {
      std::vector<Finding> findings;
      if (i % 6 == 3 || i == 1) findings.push_back(translated(i));
      if (i < 5) findings.push_back(slow);
      out.push_back(result(fmt::format("node-{:02}.example.org", i), findings,
                           i == 7 ? "26.33.1048" : "28.39.1002"));
    }
    out.push_back(file("node-62.json", contentOf(out.front()).substr(0, 200)));
    return out;
  }
  std::vector<std::string> call(const std::vector<std::string>& files,
                                const std::string& page) const {
    std::vector<std::string> words{"doctor", "nodes"};
    words.insert(words.end(), files.begin(), files.end());
    for (const char* word : {"--expect", "node/node-00 node/node-63", "-o"})
      words.emplace_back(word);
    words.push_back(page);
    return words;
  }
  std::string folder_;
};

TEST_F(DoctorNodes, TheWorstOfTheMostNodesComesFirst) {
  const std::string page = folder_ + "nodes.html";
  Program run(call(cluster(), page));
  EXPECT_EQ(run.finish(), 2) << run.err();
  const std::string text = run.out();
  EXPECT_TRUE(
      text.starts_with("64 nodes: 11 with failures, 3 with warnings only, 2 without an answer\n"))
      << text;
  EXPECT_TRUE(has(text, "NO ANSWER  node-62: ")) << text;
  EXPECT_TRUE(has(text, "ends within a diagnosis")) << text;
  EXPECT_TRUE(has(text, "NO ANSWER  node-63: no result")) << text;
  EXPECT_TRUE(has(text, "FAILURE  iommu.translated  11 of 64 nodes")) << text;
  EXPECT_LT(text.find("iommu.translated"), text.find("cpu.governor"));
  const std::string html = contentOf(page);
  EXPECT_TRUE(html.ends_with("</html>\n"));
  for (const char* part : {"11 of 64 nodes: iommu.translated", "No answer from 2 of 64 nodes",
                           "1 finding in other words", "26.33.1048", "&lt;b&gt;mlx5_0&lt;/b&gt;"})
    EXPECT_TRUE(has(html, part)) << part;
  EXPECT_FALSE(has(html, "<b>mlx5_0")) << "a finding adds HTML";
}

TEST_F(DoctorNodes, HealthyNodesAreSaidToBe) {
  Program run({"doctor", "nodes", result("a", {}), result("b", {})});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_EQ(run.out(), "2 nodes: no fault found\n\n");
}

TEST_F(DoctorNodes, NothingOfOneNodeHidesAnother) {
  const std::string first = result("a", {}),
                    bad = file("odd.json", "{\"format\": \"viaduct-doctor/7\"}");
  std::filesystem::copy(first, folder_ + "again.json");
  Program run({"doctor", "nodes", first, folder_ + "again.json", bad, folder_ + "none.json"});
  EXPECT_EQ(run.finish(), 1) << run.err();
  EXPECT_TRUE(run.out().starts_with("4 nodes: 2 without an answer")) << run.out();
  EXPECT_TRUE(has(run.out(), "NO ANSWER  odd: ")) << run.out();
  EXPECT_TRUE(has(run.out(), "NO ANSWER  none: ")) << run.out();
  Program nowhere({"doctor", "nodes", first, "-o", "/no/such/folder/p.html"});
  EXPECT_EQ(nowhere.finish(), 3);
  EXPECT_TRUE(has(nowhere.err(), "/no/such/folder")) << nowhere.err();
  Program none({"doctor", "nodes"});
  EXPECT_EQ(none.finish(), 3);
  EXPECT_TRUE(has(none.err(), "FILES is required")) << none.err();
}

// A copy of the page without its rule against scripts measures itself.
constexpr auto kMeasureNodes = R"JS(<script>
const says = frameElement.dataset, root = document.documentElement;
document.querySelectorAll('details').forEach((d) => d.open = true);
says.width = innerWidth;
says.sideways = root.scrollWidth > innerWidth;
const first = document.querySelector('article.finding');
says.first = first.querySelector('h3').innerText;
says.inside = [...document.querySelectorAll('h1, h2, h3, p, li, pre, article')].every((e) => {
  const box = e.getBoundingClientRect();
  return box.left >= 0 && box.right <= innerWidth;
});
says.rows = document.querySelectorAll('section:last-of-type tbody tr').length;
says.readable = [...document.querySelectorAll('p, li, td, code')].every(
    (e) => parseFloat(getComputedStyle(e).fontSize) >= 11);
</script></body>)JS";

TEST_F(DoctorNodes, ThePageFitsAPhoneAndADesk) {
  if (browser().empty()) GTEST_SKIP() << "skipped: no chromium on this machine";
  const std::string page = folder_ + "nodes.html";
  Program run(call(cluster(), page));
  ASSERT_EQ(run.finish(), 2) << run.err();
  const auto [plain, messages] = load(page, "1200,900", folder_);
  EXPECT_TRUE(has(plain, "</html>")) << messages;
  EXPECT_FALSE(has(messages, "CONSOLE")) << messages;
  const std::string copy = replaced(replaced(contentOf(page), "Content-Security-Policy", "x-none"),
                                    "</body>", kMeasureNodes);
  for (const int width : {400, 1200}) {
    const auto [dom, log] = load(file("frame.html", framed(copy, width)), "1400,900", folder_);
    EXPECT_TRUE(has(dom, "data-width=\"" + std::to_string(width) + "\"")) << log;
    EXPECT_TRUE(has(dom, "data-sideways=\"false\"")) << width << ": it scrolls sideways";
    EXPECT_TRUE(has(dom, "data-first=\"FAILURE 11 of 64 nodes: iommu.translated\"")) << width;
    EXPECT_TRUE(has(dom, "data-inside=\"true\"")) << width << ": a text is out of sight";
    EXPECT_TRUE(has(dom, "data-rows=\"64\"")) << width;
    EXPECT_TRUE(has(dom, "data-readable=\"true\"")) << width << ": letters too small to read";
  }
}

}  // namespace
}  // namespace viaduct::testing
