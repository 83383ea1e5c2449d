// `viaduct bench` in several terminals: members meet, wait for each other, and end.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <viaduct/deadline.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/program.h"
#include "base/fd.h"
#include "host/facts.h"
#include "support/free_port.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class BenchMeeting : public ::testing::Test {
 protected:
  Words member(const char* rank, const Words& more = {}) const {
    Words out{"bench", "--meet",       where_, "--backend", "tcp", "--block-sizes",
              "4K",    "--iterations", "20",   "--rank",    rank,  "--meet-timeout",
              "20s"};
    return withFlags(std::move(out), more);
  }
  const std::uint16_t port_ = freePort();
  std::string where_ = "127.0.0.1:" + std::to_string(port_);
};

// Rank 0 listens on all of this host's addresses, not only on loopback.
class BenchMeetingBeyondLoopback : public BenchMeeting {
 protected:
  BenchMeetingBeyondLoopback() { where_ = "0.0.0.0:" + std::to_string(port_); }
};

TEST_F(BenchMeetingBeyondLoopback, RankZeroWithoutASecretSaysSoInsteadOfWaiting) {
  Program lead(member("0"));
  EXPECT_EQ(lead.finish(), 1);
  EXPECT_TRUE(has(lead.err(), "there is no token")) << lead.err();
  EXPECT_TRUE(has(lead.err(), "--secret")) << lead.err();
  EXPECT_FALSE(has(lead.err(), "waiting")) << lead.err();
}

TEST_F(BenchMeetingBeyondLoopback, OneSecretLetsMembersMeet) {
  Program lead(member("0", {"--secret", "swordfish", "--output", "json"}));
  Program other(member("1"), {"VIADUCT_SECRET=swordfish"});
  EXPECT_EQ(lead.finish(), 0) << lead.err();
  EXPECT_EQ(other.finish(), 0) << other.err();
  EXPECT_FALSE(has(lead.out() + lead.err(), "swordfish")) << lead.out();
}

TEST_F(BenchMeetingBeyondLoopback, AWrongSecretIsSaidAtBothEnds) {
  Program lead(member("0", {"--secret", "swordfish"}));
  Program other(member("1", {"--secret", "guessed"}));
  EXPECT_EQ(other.finish(), 1);
  EXPECT_TRUE(has(other.err(), "the token is not the meeting place's")) << other.err();
  ::kill(lead.pid(), SIGINT);
  EXPECT_EQ(lead.finish(), 130) << "it was still waiting";
  EXPECT_TRUE(has(lead.err(), "turned 127.0.0.1")) << lead.err();
}

TEST_F(BenchMeeting, AWaitingMemberNamesTheMissingOnes) {
  Program lead(member("0", {"--output", "json", "--meet-timeout", "4s"}));
  EXPECT_EQ(lead.finish(), 1);
  EXPECT_TRUE(has(lead.err(), "still waiting: join group default: meeting place " + where_ +
                                  ": 1 of 2 have joined: rank 0 ("))
      << lead.err();
  EXPECT_TRUE(has(lead.err(), "no member requested rank 1; ")) << lead.err();
  EXPECT_TRUE(has(lead.err(), " s left\n")) << lead.err();
  EXPECT_FALSE(has(lead.out(), "waiting")) << lead.out();
}

TEST_F(BenchMeeting, AMemberWithoutAConnectionReportsTheLastError) {
  Program other(member("1", {"--meet-timeout", "4s"}));
  EXPECT_EQ(other.finish(), 1);
  EXPECT_TRUE(has(other.err(), "still waiting: join group default: meeting place " + where_))
      << other.err();
  EXPECT_TRUE(has(other.err(), "Connection refused")) << other.err();
}

// Whether a process listens at this port of loopback.
bool listens(std::uint16_t port) {
  const base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
}

TEST_F(BenchMeeting, CtrlCEndsTheWait) {
  Program lead(member("0", {"--meet-timeout", "600s"}));
  const Deadline until = 60s;
  while (!listens(port_)) ASSERT_FALSE(until.passed()) << "rank 0 serves nothing";
  ::kill(lead.pid(), SIGINT);
  EXPECT_EQ(lead.finish(), 130) << lead.err();
}

TEST_F(BenchMeeting, EveryMemberSaysWhereTheResultsAppear) {
  Program lead(member("0")), other(member("1"));
  EXPECT_EQ(lead.finish(), 0) << lead.err();
  EXPECT_EQ(other.finish(), 0) << other.err();
  EXPECT_TRUE(has(lead.err(), "rank 0 of 2; results appear here")) << lead.err();
  const std::string there =
      "rank 1 of 2; results appear at rank 0 (" + host::facts().hostname + ":";
  EXPECT_TRUE(has(other.err(), there)) << other.err();
}

TEST_F(BenchMeeting, EveryMemberEndsWithTheVerdictOfTheRun) {
  // If --backend is given twice, the last one counts.
  const Words harmed{"VIADUCT_FAKE=far=1,lie=corrupt"};
  for (const Words& more :
       {Words{"--backend", "fake"}, Words{"--backend", "fake", "--against", "--batch 2"}}) {
    Program lead(member("0", more), harmed), other(member("1", more), harmed);
    EXPECT_EQ(lead.finish(), 1) << lead.err();
    EXPECT_EQ(other.finish(), 1) << other.err();
    EXPECT_TRUE(has(other.err(), "not every row is valid")) << other.err();
  }
}

TEST_F(BenchMeeting, EveryMemberSaysWhichRequirementIsNotMet) {
  const Words more{"--require", "not-tcp"};
  Program lead(member("0", more)), other(member("1", more));
  for (Program* one : {&lead, &other}) {
    EXPECT_EQ(one->finish(), 1) << one->err();
    EXPECT_TRUE(has(one->err(), "REQUIREMENT NOT MET: no path but TCP here")) << one->err();
    EXPECT_EQ(one->out(), "");
  }
}

TEST_F(BenchMeeting, TheBannerOfNixlbenchListsTheSettings) {
  const Words words{"--runtime_type",
                    "ASIO",
                    "--asio_port",
                    std::to_string(port_),
                    "--backend",
                    "tcp",
                    "--block-sizes",
                    "8K,4KiB",
                    "--norecreate_xfer",
                    "--use_hugepages=false",
                    "--check_consistency",
                    "--total_buffer_size",
                    "8MiB",
                    "--num_iter",
                    "10"};
  Program lead(words, {}, "nixlbench"), other(words, {}, "nixlbench");
  EXPECT_EQ(lead.finish(), 0) << lead.err();
  EXPECT_EQ(other.finish(), 0) << other.err();
  const std::string out = lead.out() + other.out();  // one of the two is rank 0
  const std::pair<const char*, std::string> lines[] = {
      {"Runtime (--runtime_type=[ETCD,ASIO])", "ASIO"},
      {"ASIO Address (--asio_address) ", "127.0.0.1"},
      {"ASIO Port (--asio_port) ", std::to_string(port_)},
      {"Recreate xfer each iteration (--recreate_xfer=[0,1])", "0"},
      {"Use hugepages (--use_hugepages=[0,1])", "0"},
      {"Check consistency (--check_consistency=[0,1])", "1"},
      {"Total buffer size (--total_buffer_size=N)", "8388608"},
      {"Start block size (--start_block_size=N)", "4096"},
      {"Max block size (--max_block_size=N)", "8192"},
      {"Num iter (--num_iter=N)", "16"},
      {"Warmup iter (--warmup_iter=N)", "112"}};
  for (const auto& [label, value] : lines) {
    std::string line = label;
    line.resize(60, ' ');
    EXPECT_TRUE(has(out, "\n" + line + ": " + value + "\n")) << line << out;
  }
  EXPECT_FALSE(has(out, "ETCD Endpoint")) << out;
}

TEST_F(BenchMeeting, AMemberThatCannotOpenItsAgentTellsTheOthersWhy) {
  // An address reserved for documentation, which no host has.
  const Words elsewhere{"VIADUCT_LISTEN=203.0.113.1:0"};
  for (const bool lead_fails : {false, true}) {
    Program lead(member("0"), lead_fails ? elsewhere : Words{});
    Program other(member("1"), lead_fails ? Words{} : elsewhere);
    EXPECT_EQ(lead.finish(), 1) << lead.err();
    EXPECT_EQ(other.finish(), 1) << other.err();
    const std::string& told = lead_fails ? other.err() : lead.err();
    EXPECT_TRUE(has(told, lead_fails ? "rank 0 (" : "rank 1 (")) << told;
    EXPECT_TRUE(has(told, "203.0.113.1:0: Cannot assign requested address")) << told;
    EXPECT_FALSE(has(told, "died")) << told;
  }
}

TEST(SuiteMeeting, AWaitingMemberNamesTheMissingOnes) {
  Program other({"suite", "--also", "two: VIADUCT_SOCKETS=2", "--meet", freeAddress(), "--rank",
                 "1", "--meet-timeout", "4s"});
  EXPECT_EQ(other.finish(), 1);
  EXPECT_TRUE(has(other.err(), "still waiting: join group default-suite: ")) << other.err();
}

}  // namespace
}  // namespace viaduct::testing
