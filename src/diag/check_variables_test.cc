#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "diag/advice.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"
#include "diag/variable_checks.h"

namespace viaduct::diag {
namespace {

using testing::Fixture;

const std::vector<std::string> kVariables{"variables"};
using Codes = std::vector<std::string>;

Codes variableFaults(const testing::NodeFolder& folder) {
  Codes out;
  const Findings findings = diagnose(folder.node(), kVariables);
  for (const Finding& one : findings.all())
    if (one.severity > Severity::kInfo) out.push_back(one.code);
  return out;
}

Finding onlyFinding(const testing::NodeFolder& folder) {
  const Findings findings = diagnose(folder.node(), kVariables);
  return findings.all().size() == 1 ? findings.all()[0] : Finding{};
}

struct Planted {
  const char* name;
  const char* value;
  const char* code;  // empty: the value has no fault
};

void expectCodes(Fixture (*make)(), std::initializer_list<Planted> all) {
  Fixture folder = make();
  const Variables healthy = folder.variables;
  for (const Planted& one : all) {
    folder.variables = healthy;
    folder.variables[one.name] = one.value;
    const Codes wanted = *one.code == '\0' ? Codes{} : Codes{one.code};
    EXPECT_EQ(variableFaults(folder), wanted) << one.name << "=" << one.value;
    const Findings findings = diagnose(folder.node(), kVariables);
    for (const Finding& found : findings.all()) {
      EXPECT_NE(found.what.find(one.name), std::string::npos) << found.what;
      EXPECT_TRUE(found.severity == Severity::kInfo || !found.fix.empty()) << found.code;
      EXPECT_TRUE(found.what.ends_with('.') && !found.evidence.empty()) << found.what;
    }
  }
}

TEST(CheckVariables, SaysNothingAboveInfoOfHealthyNodes) {
  for (const testing::HealthyNode& node : testing::healthyNodes()) {
    const Fixture folder = node.make();
    EXPECT_EQ(variableFaults(folder), Codes()) << node.name;
    const Findings findings = diagnose(folder.node(), kVariables);
    EXPECT_FALSE(findings.fines().empty()) << node.name;
  }
}

TEST(CheckVariables, OurOwnAdviceIsRightOnEachNode) {
  for (const testing::HealthyNode& node : testing::healthyNodes()) {
    Fixture folder = node.make();
    const Advice advice = adviceFor(folder.node());
    for (const AdvisedVariable& one : advice.set) folder.variables[one.name] = one.value;
    EXPECT_EQ(variableFaults(folder), Codes()) << node.name;
  }
}

TEST(CheckVariables, FindsVariablesThatDefeatRdmaOverRoce) {
  expectCodes(
      testing::roceNode,
      {{"NCCL_IB_DISABLE", "1", "variables.nccl-ib-disable"},
       {"NCCL_IB_DISABLE", "0", ""},
       {"NCCL_NET", "socket", "variables.nccl-net"},
       {"NCCL_NET", "IB", ""},
       {"NCCL_P2P_DISABLE", "1", "variables.nccl-p2p-disable"},
       {"NCCL_NET_GDR_LEVEL", "LOC", "variables.nccl-net-gdr-level"},
       {"NCCL_NET_GDR_LEVEL", "0", "variables.nccl-net-gdr-level"},
       {"NCCL_NET_GDR_LEVEL", "5", ""},
       {"NCCL_IB_HCA", "=mlx5_0,mlx5_1", ""},
       {"NCCL_IB_HCA", "mlx5", ""},
       {"NCCL_IB_HCA", "^mlx5_0", ""},
       {"NCCL_IB_HCA", "=mlx5_10", "variables.nccl-ib-hca"},
       {"NCCL_IB_HCA", "=mlx5_0:1,mlx5_44", "variables.nccl-ib-hca"},
       {"NCCL_IB_HCA", "=mlx5_0:1", ""},
       {"NCCL_IB_HCA", "^mlx5", "variables.nccl-ib-hca"},
       {"NCCL_SOCKET_IFNAME", "eth7", "variables.nccl-socket-ifname"},
       {"NCCL_SOCKET_IFNAME", "rail", ""},
       {"NCCL_SOCKET_IFNAME", "=rail", "variables.nccl-socket-ifname"},
       {"NCCL_SOCKET_IFNAME", "^lo,docker", ""},
       {"GLOO_SOCKET_IFNAME", "eth7", "variables.gloo-socket-ifname"},
       {"GLOO_SOCKET_IFNAME", "eno1", ""},
       {"NCCL_IB_GID_INDEX", "3", ""},
       {"NCCL_IB_GID_INDEX", "-1", ""},
       {"NCCL_IB_GID_INDEX", "0", "variables.nccl-ib-gid-index"},
       {"NCCL_IB_GID_INDEX", "1", "variables.nccl-ib-gid-index"},
       {"NCCL_IB_GID_INDEX", "2", "variables.nccl-ib-gid-index"},
       {"NCCL_IB_GID_INDEX", "7", "variables.nccl-ib-gid-index"},
       {"UCX_IB_GID_INDEX", "auto", ""},
       {"UCX_IB_GID_INDEX", "99999999999999999999", ""},
       {"UCX_IB_GID_INDEX", "2", "variables.ucx-ib-gid-index"},
       {"UCX_TLS", "tcp", "variables.ucx-tls"},
       {"UCX_TLS", "tcp,cuda_copy", "variables.ucx-tls"},
       {"UCX_TLS", "^ib", "variables.ucx-tls"},
       {"UCX_TLS", "^rc", ""},
       {"UCX_TLS", "rc", "variables.ucx-tls-cuda"},
       {"UCX_TLS", "rc_x,cuda_copy", ""},
       {"UCX_TLS", "all", ""},
       {"UCX_NET_DEVICES", "eno1", "variables.ucx-net-devices"},
       {"UCX_NET_DEVICES", "mlx5_77:1", "variables.ucx-net-devices"},
       {"UCX_NET_DEVICES", "mlx5_0", "variables.ucx-net-devices-port"},
       {"UCX_NET_DEVICES", "mlx5_0:1,mlx5_1:1", ""},
       {"UCX_NET_DEVICES", "all", ""},
       {"UCX_IB_GPU_DIRECT_RDMA", "n", "variables.ucx-ib-gpu-direct-rdma"},
       {"UCX_IB_GPU_DIRECT_RDMA", "try", ""},
       {"UCX_RNDV_THRESH", "inf", "variables.ucx-rndv-thresh"},
       {"UCX_RNDV_THRESH", "8192", ""},
       {"FI_PROVIDER", "tcp", "variables.fi-provider"},
       {"FI_PROVIDER", "verbs;ofi_rxm", ""},
       {"FI_PROVIDER", "^tcp", ""},
       {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "variables.pytorch-cuda-alloc-conf"},
       {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:512", ""},
       {"UCX_IB_REG_METHODS", "odp", ""}});
}

TEST(CheckVariables, FindsFaultsThatAreStillInjected) {
  expectCodes(testing::roceNode, {{"VIADUCT_FAULTS", "stop@0.1", "variables.viaduct-faults"},
                                  {"VIADUCT_FAULTS_ALLOWED", "yes", ""}});
}

TEST(CheckVariables, FindsVariablesThatDefeatEfa) {
  expectCodes(testing::p5,
              {{"UCX_TLS", "rc,cuda_copy", "variables.ucx-tls"},
               {"UCX_TLS", "srd,cuda_copy", ""},
               {"UCX_NET_DEVICES", "mlx5_0:1", "variables.ucx-net-devices"},
               {"FI_PROVIDER", "tcp", "variables.fi-provider"},
               {"FI_PROVIDER", "sockets", "variables.fi-provider"},
               {"FI_PROVIDER", "verbs;ofi_rxm", "variables.fi-provider"},
               {"FI_PROVIDER", "^efa", "variables.fi-provider"},
               {"FI_PROVIDER", "efa,shm", ""},
               {"FI_EFA_USE_DEVICE_RDMA", "0", "variables.fi-efa-use-device-rdma"},
               {"FI_EFA_ENABLE_SHM_TRANSFER", "1", "variables.fi-efa-enable-shm-transfer"},
               {"NCCL_NET_PLUGIN", "none", "variables.nccl-net-plugin"},
               {"NCCL_NET", "Socket", "variables.nccl-net"},
               {"NCCL_NET", "IB", "variables.nccl-net"},
               {"NCCL_IB_DISABLE", "1", ""},
               {"NCCL_IB_GID_INDEX", "3", ""}});
}

TEST(CheckVariables, SaysThatVariablesOfInfinibandHaveNoEffectOnEfa) {
  Fixture folder = testing::p5();
  folder.variables["NCCL_IB_HCA"] = "mlx5_0";
  EXPECT_EQ(onlyFinding(folder).code, "variables.no-effect");
}

TEST(CheckVariables, FindsAPluginThatTheLoaderDoesNotFind) {
  Fixture folder = testing::p5();
  folder.write("/opt/aws-ofi-nccl/lib/libnccl-net.so", "");
  EXPECT_EQ(variableFaults(folder), Codes());
  folder.variables.erase("LD_LIBRARY_PATH");
  EXPECT_EQ(variableFaults(folder), Codes{"variables.aws-ofi-nccl"});
  folder.write("/etc/ld.so.conf.d/000_efa.conf", "/opt/aws-ofi-nccl/lib");
  EXPECT_EQ(variableFaults(folder), Codes());
}

TEST(CheckVariables, FindsDevicesOfOtherPods) {
  expectCodes(testing::openShiftAfter,
              {{"NCCL_IB_HCA", "=mlx5_6,mlx5_7,mlx5_10,mlx5_11", ""},
               {"NCCL_IB_HCA", "=mlx5_12", "variables.nccl-ib-hca"},
               {"NCCL_IB_HCA", "mlx5_1,mlx5_6", ""},  // a physical function; topic sriov reports it
               {"NCCL_IB_HCA", "mlx5_6,mlx5_10", ""},
               {"UCX_NET_DEVICES", "mlx5_12:1", "variables.ucx-net-devices"},
               {"UCX_NET_DEVICES", "mlx5_0:1", ""},
               {"UCX_IB_REG_METHODS", "odp,direct", "variables.ucx-ib-reg-methods"},
               {"NCCL_SOCKET_IFNAME", "=net9", "variables.nccl-socket-ifname"}});
}

TEST(CheckVariables, FindsAPrefixThatTakesMore) {
  Fixture folder = testing::aksNd();
  folder.addRdma({.name = "mlx5_ib10"});
  folder.variables["NCCL_IB_HCA"] = "mlx5_ib0,mlx5_ib1";
  const Finding found = onlyFinding(folder);
  EXPECT_EQ(found.code, "variables.nccl-ib-hca-prefix");
  EXPECT_EQ(found.what, "NCCL_IB_HCA=mlx5_ib0,mlx5_ib1 takes mlx5_ib10, too.");
  EXPECT_EQ(found.fix, "export NCCL_IB_HCA='=mlx5_ib0,mlx5_ib1'");
  folder.variables["NCCL_IB_HCA"] = "=mlx5_ib0,mlx5_ib1";
  EXPECT_EQ(variableFaults(folder), Codes());
}

TEST(CheckVariables, NamesTheDevicesThatAGidIndexIsWrongOf) {
  Fixture folder = testing::roceNode();
  folder.variables["NCCL_IB_GID_INDEX"] = "3";
  folder.rewrite("/sys/class/infiniband/mlx5_5/ports/1/gid_attrs/types/3", "IB/RoCE v1");
  const Finding found = onlyFinding(folder);
  EXPECT_EQ(found.code, "variables.nccl-ib-gid-index");
  EXPECT_NE(found.what.find("selects a RoCE v1 GID of mlx5_5."), std::string::npos) << found.what;
}

TEST(CheckVariables, WithoutRdmaOnlyInterfacesMatter) {
  expectCodes(testing::laptop, {{"NCCL_IB_DISABLE", "1", ""},
                                {"UCX_TLS", "tcp", ""},
                                {"FI_PROVIDER", "tcp", ""},
                                {"NCCL_IB_HCA", "mlx5_0", ""},
                                {"NCCL_SOCKET_IFNAME", "eth0", "variables.nccl-socket-ifname"}});
}

TEST(CheckVariables, FindsVariablesThatOnlyProcess1Has) {
  Fixture folder = testing::openShiftAfter();
  using namespace std::string_literals;
  folder.write("/proc/1/environ",
               "PATH=/bin\0NCCL_IB_HCA==mlx5_6\0UCX_TLS=rc,cuda\0SECRET=swordfish\0noequals\0"s);
  const Finding found = onlyFinding(folder);
  EXPECT_EQ(found.code, "variables.only-in-process-1");
  EXPECT_NE(found.what.find("NCCL_IB_HCA, UCX_TLS"), std::string::npos) << found.what;
  EXPECT_EQ(found.fix, "eval \"$(viaduct env --from 1)\"");
  folder.write("/run/viaduct/env", "");
  EXPECT_EQ(onlyFinding(folder).fix, ". /run/viaduct/env");
  folder.variables["NCCL_IB_HCA"] = "=mlx5_6";
  folder.variables["UCX_TLS"] = "rc,cuda";
  EXPECT_EQ(variableFaults(folder), Codes());
}

TEST(CheckVariables, HostileValuesStayInALine) {
  Fixture folder = testing::roceNode();
  for (const char* name : {"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "UCX_TLS", "UCX_NET_DEVICES",
                           "NCCL_IB_GID_INDEX", "FI_PROVIDER", "LD_LIBRARY_PATH"})
    folder.variables[name] = "\x1b[2J\n;rm -rf /,,:^=" + std::string(5000, ',') + "\xff";
  const Findings findings = diagnose(folder.node(), kVariables);
  for (const Finding& one : findings.all()) {
    EXPECT_EQ(one.what.find_first_of("\n\x1b\xff"), std::string::npos) << one.code;
    for (const Evidence& each : one.evidence)
      EXPECT_EQ(each.value.find_first_of("\n\x1b\xff"), std::string::npos) << one.code;
  }
}

TEST(CheckVariables, SaysWhenItCannotSeeTheVariables) {
  const Fixture folder = testing::roceNode();
  Node node = folder.node();
  node.variables.clear();
  node.variables_from.clear();
  EXPECT_TRUE(diagnose(node, kVariables).has("variables.unknown"));
  const Fixture bare(+[](testing::NodeFolder&) {});
  Node without = bare.node();
  without.variables["NCCL_SOCKET_IFNAME"] = "eth0";
  EXPECT_TRUE(diagnose(without, kVariables).has("variables.interfaces-unknown"));
}

}  // namespace
}  // namespace viaduct::diag
