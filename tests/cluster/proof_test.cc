// `viaduct p2p` between hosts detects figures that are not what they seem.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cluster/command.h"
#include "cluster/hosts.h"
#include "process/process.h"
#include "support/paths.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

class Proof : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!a_.made() || !b_.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  }
  // Makes links "rail0", ... between A (10.77.N.1) and B (10.77.N.2).
  void makeRails(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string net = "10.77." + std::to_string(i);
      ASSERT_TRUE(join(a_, b_, "rail" + std::to_string(i), net + ".1/24", net + ".2/24"));
    }
  }
  // Starts a target on A, and runs an initiator on B to its end. Returns the initiator's exit code.
  int measure(const std::string& ip, const std::string& more, const std::string& environment = "") {
    Command target(a_, "p2p --mode target --ip " + ip + " --port 5555");
    EXPECT_TRUE(target.readUntil("waiting for")) << target.text();
    Command initiator(b_, "p2p --mode initiator --ip " + reached_ + " --port 5555 " + more,
                      environment);
    const int code = initiator.finish();
    text_ = initiator.text();
    return code;
  }
  int measure(const std::string& more, const std::string& environment = "") {
    return measure("10.77.0.1", more, environment);
  }

  Host a_, b_;
  std::string reached_ = "10.77.0.1";
  std::string text_;
};

constexpr auto kSizes = "--buffer_sizes 4MB --iterations 10";

TEST_F(Proof, TheTwoCommandsBetweenTwoHosts) {
  makeRails(1);
  EXPECT_EQ(measure("--buffer_sizes 64KB,4MB --iterations 20"), 0) << text_;
  EXPECT_TRUE(has(text_, "tcp/socket+frames over rail0: proven")) << text_;
  EXPECT_TRUE(has(text_, "rail0 of ")) << "the proof names both ends: " << text_;
}

TEST_F(Proof, TrafficOverAnotherInterfaceThanAskedIsCaught) {
  makeRails(2);
  // The route from rail0's address to rail1's network uses rail1.
  reached_ = "10.77.1.1";
  EXPECT_EQ(measure(reached_, kSizes, "VIADUCT_RAILS=10.77.0.2"), 1) << text_;
  EXPECT_TRUE(has(text_, "fallback: ")) << text_;
  EXPECT_TRUE(has(text_, "went over rail1 of ")) << text_;
  EXPECT_TRUE(has(text_, "not over rail0")) << text_;
}

TEST_F(Proof, FourRailsThatAllCarryAreProven) {
  makeRails(4);
  EXPECT_EQ(measure("0.0.0.0", kSizes, "VIADUCT_RAILS=10.77.0.2,10.77.1.2,10.77.2.2,10.77.3.2"), 0)
      << text_;
  EXPECT_TRUE(has(text_, "over rail3: proven")) << text_;
}

// The dialed end has a rail for which the dialing end opened no socket.
TEST_F(Proof, OneOfFourRailsThatIsSilentIsCaught) {
  makeRails(4);
  Process initiator({kRailsPeer, "initiator", "10.77.0.2,10.77.1.2,10.77.2.2,10.77.3.2"}, b_.pid());
  const std::string card = initiator.answer(20s).value_or("");
  Process target({kRailsPeer, "target", "10.77.0.1,10.77.1.1,10.77.2.1", card}, a_.pid());
  const std::string verdict = initiator.answer(40s).value_or("");
  EXPECT_TRUE(verdict.starts_with("silent-rail: rail3 of ")) << verdict;
}

TEST_F(Proof, ARateAboveTheLinksIsCaught) {
  makeRails(1);
  EXPECT_EQ(measure(std::string(kSizes) + " --link-rate rail0=1Mbit"), 1) << text_;
  EXPECT_TRUE(has(text_, "invalid: ")) << text_;
  EXPECT_TRUE(has(text_, "link rail0 of ")) << text_;
}

TEST_F(Proof, ATbfLinkThatIsFullIsTheCeiling) {
  makeRails(1);
  ASSERT_TRUE(b_.tc("qdisc add dev rail0 root tbf rate 200mbit burst 128kb latency 50ms"));
  EXPECT_EQ(measure("--buffer_sizes 4MB --iterations 5 --link-rate rail0=200Mbit"), 0) << text_;
  EXPECT_TRUE(has(text_, "link rail0 of ")) << text_;
}

TEST_F(Proof, AMissingRequiredPathIsReported) {
  makeRails(1);
  EXPECT_EQ(measure(std::string(kSizes) + " --require not-tcp"), 1) << text_;
  EXPECT_TRUE(has(text_, "not-required: not-tcp was required")) << text_;
}

TEST_F(Proof, FailuresToConnectAreToldApart) {
  makeRails(1);
  // A busy machine needs seconds for the first attempt.
  const auto said = [&](const std::string& ip) {
    Command initiator(b_, "p2p --mode initiator --timeout 4s --port 5555 --ip " + ip);
    EXPECT_EQ(initiator.finish(), 1) << initiator.text();
    return initiator.text();
  };
  EXPECT_TRUE(has(said("10.77.0.1"), "no process listens there"));
  EXPECT_TRUE(has(said("10.99.0.1"), "no route"));
  // Packets to this wrong neighbour entry are lost, as if a firewall dropped them.
  ASSERT_TRUE(b_.ip("neigh add 10.77.0.9 lladdr 02:00:00:00:00:99 dev rail0"));
  EXPECT_TRUE(has(said("10.77.0.9"), "drops the packets, or the host is down"));
  Command wrong(a_, "p2p --mode target --ip 10.77.0.2 --port 5555");
  EXPECT_EQ(wrong.finish(), 1);
  EXPECT_TRUE(has(wrong.text(), "this host does not have the address")) << wrong.text();
}

}  // namespace
}  // namespace viaduct::testing
