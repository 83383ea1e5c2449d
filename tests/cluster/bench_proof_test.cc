// `viaduct bench` between hosts detects runs whose figures are not what they seem.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "cluster/command.h"
#include "cluster/hosts.h"
#include "support/paths.h"
#include "support/preloads.h"

namespace viaduct::testing {
namespace {

bool hasWords(const std::string& text, const std::string& part) {
  // Joins lines, because the output breaks them at the terminal's width.
  std::string flat;
  for (const char c : text)
    if (c != '\n' && c != ' ') flat += c;
  std::string wanted;
  for (const char c : part)
    if (c != ' ') wanted += c;
  return flat.find(wanted) != std::string::npos;
}

class BenchProof : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!a_.made() || !b_.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  }
  void makeRails(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string net = "10.77." + std::to_string(i);
      ASSERT_TRUE(join(a_, b_, "rail" + std::to_string(i), net + ".1/24", net + ".2/24"));
    }
  }
  // Runs an initiator on A and a target on B; returns both exit codes. `text_`: the initiator's
  // output.
  std::pair<int, int> run(const std::string& flags, const std::string& backend = "tcp") {
    const std::string all = "bench --meet 10.77.0.1:7000 --block-sizes 1M --batch 8 --backend " +
                            backend + " " + flags + " --rank ";
    const auto environment = [this](const std::string& listen, const std::string& rails) {
      return "VIADUCT_SECRET=word VIADUCT_LISTEN=" + listen + " VIADUCT_RAILS=" + rails +
             variables_;
    };
    Command initiator(a_, all + "0", environment(listen_a_, rails_a_) + variables_a_);
    Command target(b_, all + "1", environment(listen_b_, rails_b_) + before_target_);
    const int target_code = target.finish();
    const int code = initiator.finish();
    text_ = initiator.text() + "--- target\n" + target.text();
    return {code, target_code};
  }

  Host a_, b_;
  std::string listen_a_ = "10.77.0.1:0", listen_b_ = "10.77.0.2:0", rails_a_, rails_b_, variables_,
              variables_a_;
  std::string before_target_;  // a program that starts the target
  std::string text_;
};

TEST_F(BenchProof, ALinkBetweenTwoHostsIsProven) {
  makeRails(1);
  EXPECT_EQ(run(""), std::pair(0, 0)) << text_;
  EXPECT_TRUE(hasWords(text_, "tcp/socket+frames on rail0, proven")) << text_;
}

TEST_F(BenchProof, TrafficOverAnotherInterfaceThanAskedIsAFallback) {
  makeRails(2);
  rails_a_ = "10.77.0.1";
  listen_b_ = "10.77.1.2:0";
  EXPECT_EQ(run("").first, 1) << text_;
  EXPECT_TRUE(hasWords(text_, "FALLBACK")) << text_;
  EXPECT_TRUE(hasWords(text_, "went over rail1 of")) << text_;
}

// The data goes over rail1 as in the test above, but /proc/net/dev of A shows the bytes at rail0.
TEST_F(BenchProof, AForgedCountOfTheInterfaceIsNotBelieved) {
  if (!kPreloads) GTEST_SKIP() << "skipped: no preloading under a sanitizer";
  makeRails(2);
  rails_a_ = "10.77.0.1";
  listen_b_ = "10.77.1.2:0";
  variables_a_ = std::string(" LIE_NETWORK=rail0,rail1 LD_PRELOAD=") + kLieOtherHost;
  EXPECT_EQ(run("").first, 0) << text_;
  EXPECT_TRUE(hasWords(text_, "^ unproven:")) << text_;
  EXPECT_TRUE(hasWords(text_, "B by /proc/net/dev but")) << text_;
  EXPECT_FALSE(hasWords(text_, ", proven")) << text_;
}

// Uses a libfabric provider that claims to be RDMA: tests/lies/tcp_as_efa.cc.
TEST_F(BenchProof, TcpUnderTheNameOfRdmaIsAFallback) {
  if (std::string(kLieProviders).empty())
    GTEST_SKIP() << "skipped: no libfabric that takes a provider from outside";
  makeRails(1);
  ASSERT_TRUE(a_.carries("rail0") && b_.carries("rail0"));
  variables_ = std::string(" FI_PROVIDER_PATH=") + kLieProviders;
  EXPECT_EQ(run("", "ofi").first, 1) << text_;
  EXPECT_TRUE(hasWords(text_, "ofi/efa")) << text_;
  EXPECT_TRUE(hasWords(text_, "FALLBACK")) << text_;
  EXPECT_TRUE(hasWords(text_, "an Ethernet device: TCP")) << text_;
}

TEST_F(BenchProof, ARateAboveTheLinksIsInvalid) {
  makeRails(1);
  EXPECT_EQ(run("--link-rate rail0=1Mbit").first, 1) << text_;
  EXPECT_TRUE(hasWords(text_, "INVALID")) << text_;
  EXPECT_TRUE(hasWords(text_, "link rail0 of")) << text_;
}

// Both members have the boot id of one host, but their clocks differ by an hour.
TEST_F(BenchProof, MembersInTwoTimeNamespacesAreTimedFromTheBarrier) {
  const std::string other_clock = "unshare --time --monotonic 3600 --fork";
  if (!b_.run(other_clock + " true")) GTEST_SKIP() << "skipped: no time namespaces";
  makeRails(1);
  before_target_ = " " + other_clock;
  EXPECT_EQ(run("--bidirectional --duration 200ms"), std::pair(0, 0)) << text_;
  const auto at = text_.find("tcp: ");
  ASSERT_NE(at, std::string::npos) << text_;
  EXPECT_GT(std::strtod(text_.c_str() + at + 5, nullptr), 0.01) << text_;
}

TEST_F(BenchProof, AnImpossibleRequiredPathIsReported) {
  makeRails(1);
  EXPECT_EQ(run("--require not-tcp").first, 1) << text_;
  EXPECT_TRUE(hasWords(text_, "REQUIREMENT NOT MET: no path but TCP here")) << text_;
}

// Target B lists four rails, but initiator A dials only three. So no socket uses rail3, and the
// report has to name it.
TEST_F(BenchProof, OneOfFourRailsThatIsSilentIsNamed) {
  makeRails(4);
  rails_a_ = "10.77.0.1,10.77.1.1,10.77.2.1";
  rails_b_ = "10.77.0.2,10.77.1.2,10.77.2.2,10.77.3.2";
  listen_a_ = "none";  // so that A dials
  listen_b_ = "10.77.0.2:0,10.77.1.2:0,10.77.2.2:0";
  EXPECT_EQ(run("--bidirectional").first, 1) << text_;
  EXPECT_TRUE(hasWords(text_, "SILENT-RAIL: rail3 of")) << text_;
}

}  // namespace
}  // namespace viaduct::testing
