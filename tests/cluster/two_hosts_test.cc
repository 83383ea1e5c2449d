// Two hosts and two terminals: the commands of docs/two-hosts.md, and their failures.
#include <gtest/gtest.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <string>

#include "cluster/command.h"
#include "cluster/hosts.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

std::string member(int rank, const std::string& backend,
                   const std::string& more = "--iterations 20") {
  return "bench --meet 10.77.0.1:7000 --rank " + std::to_string(rank) + " --backend " + backend +
         " --block-sizes 64K --meet-timeout 60s " + more;
}

class TwoHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!desk_.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  }
  const Desk desk_{2, 2};
};

// Gives a host its own boot id. Two machines have different boot ids; namespaces share the
// machine's.
bool giveBootId(const Host& host, const std::string& id) {
  Process shell({"sh"}, host.pid());
  const std::string file = "/dev/shm/boot_id";
  return shell.ask("echo " + id + " > " + file + " && mount --bind " + file +
                   " /proc/sys/kernel/random/boot_id && echo done") == "done";
}

// Runs without --backend, as the first run of docs/two-hosts.md does.
TEST_F(TwoHosts, TheFirstRunLeavesOutWhatNeedsOneHost) {
  ASSERT_TRUE(giveBootId(desk_[0], "boot-of-node0") && giveBootId(desk_[1], "boot-of-node1"));
  const auto typed = [](int rank) {
    return "bench --meet 10.77.0.1:7000 --block-sizes 64K --iterations 20 --meet-timeout 60s "
           "--rank " +
           std::to_string(rank);
  };
  Command lead(desk_[0], typed(0), "VIADUCT_SECRET=swordfish");
  Command other(desk_[1], typed(1), "VIADUCT_SECRET=swordfish");
  EXPECT_EQ(lead.finish(), 0) << lead.text();
  EXPECT_EQ(other.finish(), 0) << other.text();
  EXPECT_TRUE(has(lead.text(), "local is left out: it needs both ends on one host\n"))
      << lead.text();
  EXPECT_TRUE(has(lead.text(), "tcp write")) << lead.text();
  // Both hosts share one kernel, in spite of their boot ids.
  EXPECT_TRUE(has(lead.text(), "and perhaps 1 other host")) << lead.text();
  EXPECT_TRUE(has(lead.text(), "perhaps one host")) << lead.text();
  EXPECT_FALSE(has(lead.text(), "local write")) << lead.text();
  EXPECT_FALSE(has(lead.text() + other.text(), "cannot be used")) << lead.text() << other.text();
}

TEST_F(TwoHosts, WithoutASecretRankZeroSaysSoAtOnce) {
  Command lead(desk_[0], member(0, "tcp"));
  EXPECT_EQ(lead.finish(), 1) << lead.text();
  EXPECT_TRUE(has(lead.text(), "10.77.0.1:7000")) << lead.text();
  EXPECT_TRUE(has(lead.text(), "--secret")) << lead.text();
}

// A firewall between the hosts passes only the ports that docs/two-hosts.md lists.
TEST_F(TwoHosts, ThreeKnownPortsAreEnough) {
  const std::string ports = "VIADUCT_LISTEN=0.0.0.0:7001 VIADUCT_TCP_PORTS=7100-7109";
  const std::string filter =
      "nft \"add table inet f { chain in { type filter hook input priority 0; policy drop; "
      "iif lo accept; ct state established,related accept; "
      "tcp dport { 7000, 7001, 7100-7109 } accept; }; }\"";
  for (std::size_t host = 0; host < 2; ++host)
    if (!desk_[host].run(filter))
      GTEST_SKIP() << "skipped: no nft (package nftables), or no nf_tables in the kernel";
  Command lead(desk_[0], member(0, "tcp", "--secret swordfish --iterations 20"), ports);
  Command other(desk_[1], member(1, "tcp", "--secret swordfish --iterations 20"), ports);
  EXPECT_EQ(lead.finish(), 0) << lead.text();
  EXPECT_EQ(other.finish(), 0) << other.text();
}

TEST_F(TwoHosts, DataGoesByThePortThatWasNamed) {
  const std::string ports = "VIADUCT_LISTEN=0.0.0.0:7001 VIADUCT_TCP_PORTS=7100";
  Command lead(desk_[0], member(0, "tcp", "--secret swordfish --duration 1h"), ports);
  Command other(desk_[1], member(1, "tcp", "--secret swordfish --duration 1h"), ports);
  ASSERT_TRUE(lead.readUntil("2 processes")) << lead.text();
  EXPECT_TRUE(desk_[1].run("ss -ltn | grep -q ':7100 '"));
  EXPECT_TRUE(desk_[1].run("ss -ltn | grep -q ':7001 '"));
  EXPECT_TRUE(desk_[0].run("ss -ltn | grep -q '10.77.0.1:7000 '"));
}

class NamedDevice : public TwoHosts, public ::testing::WithParamInterface<const char*> {};

// A pod's device gets its carrier only a moment after the pod's processes start.
TEST_P(NamedDevice, IsWaitedForUntilItHasACarrier) {
  const auto built = builtInBackends();
  if (std::find(built.begin(), built.end(), GetParam()) == built.end())
    GTEST_SKIP() << "skipped: the backend " << GetParam() << " is not built";
  ASSERT_TRUE(desk_.cut(1, 1) && desk_[1].losesCarrier("rail1"));
  const std::string rail = "--secret swordfish --device_list rail1 --iterations 20";
  Command lead(desk_[0], member(0, GetParam(), rail));
  Command late(desk_[1], member(1, GetParam(), rail));
  ASSERT_TRUE(late.readUntilHas("still waiting: open the agent: rail1 is down, or has no carrier"))
      << late.text();
  ASSERT_TRUE(desk_.heal(1, 1));
  EXPECT_EQ(late.finish(), 0) << late.text();
  EXPECT_EQ(lead.finish(), 0) << lead.text();
}
INSTANTIATE_TEST_SUITE_P(Over, NamedDevice, ::testing::Values("tcp", "ofi"),
                         [](const auto& one) { return std::string(one.param); });

TEST_F(TwoHosts, ADeviceThatAppearsLateIsWaitedFor) {
  Command target(desk_[0], "p2p --mode target --ip 10.77.0.1",
                 "VIADUCT_BACKENDS=tcp VIADUCT_RAILS=late0");
  ASSERT_TRUE(target.readUntilHas("still waiting: open the agent: this host has no device late0"))
      << target.text();
  ASSERT_TRUE(desk_[0].ip("link add late0 type veth peer name late1"));
  ASSERT_TRUE(desk_[0].ip("addr add 10.99.0.1/24 dev late0"));
  ASSERT_TRUE(desk_[0].ip("link set late1 up") && desk_[0].ip("link set late0 up"));
  EXPECT_TRUE(target.readUntil("waiting for: viaduct p2p")) << target.text();
}

// The kernel gives a device a link-local address as soon as it has a carrier.
TEST_F(TwoHosts, ALinkLocalAddressIsNotTheOneThatIsWaitedFor) {
  ASSERT_TRUE(desk_[0].ip("link add late0 type veth peer name late1"));
  ASSERT_TRUE(desk_[0].ip("link set late1 up") && desk_[0].ip("link set late0 up"));
  if (!desk_[0].ip("addr replace fe80::7/64 dev late0 nodad"))
    GTEST_SKIP() << "skipped: no IPv6 in the kernel";
  Command target(desk_[0], "p2p --mode target --ip 10.77.0.1",
                 "VIADUCT_BACKENDS=tcp VIADUCT_RAILS=late0");
  ASSERT_TRUE(target.readUntilHas("still waiting: open the agent: late0 has no address"))
      << target.text();
  ASSERT_TRUE(desk_[0].ip("addr add 10.99.0.1/24 dev late0"));
  EXPECT_TRUE(target.readUntil("waiting for: viaduct p2p")) << target.text();
}

}  // namespace
}  // namespace viaduct::testing
