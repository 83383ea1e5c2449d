// `viaduct env` as users run it, over folders that stand for nodes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "app/program.h"
#include "diag/fixtures_testing.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using diag::testing::Fixture;

std::vector<std::string> assignments(const diag::Variables& variables) {
  std::vector<std::string> out;
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

std::string printedOn(const Fixture& node, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"env", "--root", node.root()});
  Program run(more, assignments(node.variables));
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_EQ(run.err(), "");
  return run.out();
}

// The values of these variables in a shell that has sourced the text.
std::string sourced(const std::string& text, const std::string& variables) {
  const TemporaryFolder folder;
  folder.write("/env", text);
  const std::string command =
      "env -i PATH=\"$PATH\" sh -c '. " + folder.path() + "/env; printf %s \"" + variables + "\"'";
  std::string out;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    out.append(part.data(), got);
  EXPECT_EQ(::pclose(pipe), 0) << text;
  return out;
}

TEST(EnvCommand, PrintsAssignmentsForAShell) {
  const Fixture node = diag::testing::openShiftAfter();
  const std::string text = printedOn(node);
  EXPECT_TRUE(text.starts_with("# RDMA devices: mlx5_6, mlx5_7, mlx5_10, mlx5_11 (named by "))
      << text;
  EXPECT_TRUE(has(text, "\nexport NCCL_IB_HCA='=mlx5_6,mlx5_7,mlx5_10,mlx5_11'\n")) << text;
  EXPECT_TRUE(has(text, "\n# NCCL_IB_GID_INDEX stays unset: ")) << text;
  EXPECT_EQ(sourced(text, "$NCCL_IB_HCA $UCX_NET_DEVICES $NCCL_SOCKET_IFNAME"),
            "=mlx5_6,mlx5_7,mlx5_10,mlx5_11 mlx5_6:1,mlx5_7:1,mlx5_10:1,mlx5_11:1 =eth0");
}

TEST(EnvCommand, PrintsJsonAndManifests) {
  const Fixture node = diag::testing::openShiftAfter();
  const std::string json = printedOn(node, {"--format", "json"});
  EXPECT_TRUE(json.starts_with("{\n  \"format\": \"viaduct-env/1\"")) << json;
  EXPECT_TRUE(has(json, "\"value\": \"=mlx5_6,mlx5_7,mlx5_10,mlx5_11\"")) << json;
  const std::string yaml = printedOn(node, {"--format", "k8s"});
  EXPECT_TRUE(has(yaml, "- name: \"UCX_TLS\"\n  value: \"ib,sm,self,cuda\"\n")) << yaml;
  EXPECT_TRUE(has(yaml, "# NCCL_IB_HCA differs in each pod.\n")) << yaml;
  EXPECT_FALSE(has(yaml, "- name: \"NCCL_IB_HCA\"")) << yaml;
}

TEST(EnvCommand, HostileValuesRunNothing) {
  Fixture node = diag::testing::openShiftAfter();
  const TemporaryFolder folder;
  const std::string trap = folder.path() + "/trap";
  node.variables["PCIDEVICE_OPENSHIFT_IO_ENO5NP0RDMA_INFO"] =
      R"({"0000:19:00.3":{"rdma":{"rdma_dev":"x'\n$(touch )" + trap + R"()\n`touch )" + trap +
      R"(`'"}}})";
  node.variables["PCIDEVICE_EVIL"] = "$(touch " + trap + ")\ntouch " + trap + "\n";
  node.variables["PCIDEVICE_EVIL_INFO"] = "'\ntouch " + trap + "\n";
  const std::string text = printedOn(node);
  EXPECT_EQ(sourced(text, "$NCCL_IB_HCA"), "=mlx5_6,mlx5_7,mlx5_10,mlx5_11") << text;
  EXPECT_FALSE(std::ifstream(trap).good()) << text;
  EXPECT_TRUE(has(text, "# Note: PCIDEVICE_OPENSHIFT_IO_ENO5NP0RDMA_INFO: ")) << text;
}

TEST(EnvCommand, TakesTheVariablesOfAnotherProcess) {
  const Fixture node = diag::testing::laptop();
  const TemporaryFolder folder;
  const std::string trap = folder.path() + "/trap";
  using namespace std::string_literals;
  node.write("/proc/1/environ", "PATH=/bin\0NCCL_IB_HCA='\ntouch "s + trap +
                                    "\n\0UCX_TLS=rc\0UCX_$(touch "s + trap +
                                    ")=1\0PASSWORD=swordfish\0NCCL_SOCKET_IFNAME=net1\0"s);
  const std::string text = printedOn(node, {"--from", "1"});
  EXPECT_EQ(sourced(text, "$NCCL_IB_HCA|$UCX_TLS|$NCCL_SOCKET_IFNAME"),
            "'\ntouch " + trap + "\n|rc|net1")
      << text;
  EXPECT_FALSE(std::ifstream(trap).good()) << text;
  EXPECT_FALSE(has(text, "swordfish")) << text;
}

TEST(EnvCommand, SaysWhyAProcessCannotBeRead) {
  const Fixture node = diag::testing::laptop();
  const std::vector<std::string> words{"env", "--root", node.root(), "--from", "4711"};
  Program none(words);
  EXPECT_EQ(none.finish(), 1);
  EXPECT_TRUE(has(none.err(), "there is no process 4711")) << none.err();
  for (const char* wrong : {"x", "0", "-1", "99999999999"}) {
    Program run({"env", "--from", wrong});
    EXPECT_EQ(run.finish(), 2) << wrong;
    EXPECT_TRUE(has(run.err(), "is not a process ID")) << run.err();
  }
  if (::geteuid() == 0) GTEST_SKIP() << "skipped: root may read all processes";
  Program denied({"env", "--from", "1"});
  EXPECT_EQ(denied.finish(), 1);
  EXPECT_TRUE(has(denied.err(), "/proc/1/environ")) << denied.err();
  EXPECT_TRUE(has(denied.err(), "run the command as that user or as root")) << denied.err();
}

TEST(EnvCommand, BadInputIsNamed) {
  Program format({"env", "--format", "csv"});
  EXPECT_EQ(format.finish(), 2);
  EXPECT_TRUE(has(format.err(), "csv")) << format.err();
  Program root({"env", "--root", "/no/such/folder"});
  EXPECT_EQ(root.finish(), 1);
  EXPECT_TRUE(has(root.err(), "/no/such/folder")) << root.err();
}

TEST(EnvCommand, WithoutRdmaSaysSo) {
  const Fixture node = diag::testing::laptop();
  EXPECT_EQ(printedOn(node),
            "# This node has no RDMA device.\n"
            "# The default route goes there: the processes of a job find each other.\n"
            "export NCCL_SOCKET_IFNAME='=wlp0s20f3'\n"
            "export GLOO_SOCKET_IFNAME='wlp0s20f3'\n");
}

}  // namespace
}  // namespace viaduct::testing
