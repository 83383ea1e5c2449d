// Members are killed or stopped at every stage, and leave nothing behind.
#include <gtest/gtest.h>

#include <deque>

#include "etcd/odd_servers.h"
#include "process/process.h"
#include "support/etcd_server.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

class EtcdDeaths : public ::testing::Test {
 protected:
  void SetUp() override {
    VIADUCT_NEEDS_ETCD();
    etcd_.emplace();
  }

  Process& start(int size, const std::string& rank, const std::string& name,
                 const std::vector<std::string>& wrapper = {}, int detect_ms = 2000) {
    std::vector<std::string> words = wrapper;
    for (const std::string& word :
         {std::string(kEtcdMember), etcd_->url(), std::string("g"), std::to_string(size), rank,
          name, std::string("20"), std::to_string(detect_ms)})
      words.push_back(word);
    return members_.emplace_back(std::move(words));
  }
  std::vector<Process*> run(int size, const std::vector<std::string>& wrapper = {},
                            int detect_ms = 2000) {
    std::vector<Process*> out;
    for (int rank = 0; rank < size; ++rank)
      out.push_back(
          &start(size, std::to_string(rank), "m" + std::to_string(rank), wrapper, detect_ms));
    return out;
  }
  static void expectWhole(const std::vector<Process*>& members) {
    std::string agreed;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const std::string line = said(*members[rank]);
      const std::string head = "whole " + std::to_string(rank) + " ";
      ASSERT_TRUE(line.starts_with(head)) << line;
      if (rank == 0) agreed = line.substr(head.size());
      EXPECT_EQ(line.substr(head.size()), agreed) << "the same epoch and roster for all";
    }
  }
  // The member's next line that does not tell of its waiting.
  static std::string said(Process& member) {
    for (;;) {
      const std::string line = member.answer().value_or("nothing");
      if (!line.starts_with("waiting ")) return line;
    }
  }
  // Waits until the waiting member lists `name` among the members that have joined.
  static void waitUntilSeated(Process& waiting, const std::string& name) {
    for (;;) {
      const std::string line = waiting.answer().value_or("nothing");
      ASSERT_TRUE(line.starts_with("waiting ")) << line;
      if (line.find(" have joined: ") != line.npos && line.find(name) != line.npos) return;
    }
  }
  // Waits until the group has its first member, to whose server the others will connect.
  void waitUntilElected() {
    const auto end = Clock::now() + 20s;
    while (Clock::now() < end)
      if (!etcd_->ctl("get --prefix --keys-only /viaduct/group/g/").empty()) return;
    ADD_FAILURE() << "nobody was elected";
  }

  std::optional<EtcdServer> etcd_;
  std::deque<Process> members_;
};

TEST_F(EtcdDeaths, AKilledMemberIsNamedToAll) {
  const auto members = run(3);
  expectWhole(members);
  members[0]->send("gather a");
  members[1]->kill();
  const std::string waiting = members[0]->answer().value_or("");
  EXPECT_NE(waiting.find("rank 1 (m1) died"), std::string::npos) << waiting;
  const std::string idle = members[2]->ask("trouble").value_or("");
  EXPECT_NE(idle.find("rank 1 (m1) died"), std::string::npos) << idle;
}

TEST_F(EtcdDeaths, AKilledLeaderIsNamedToAll) {
  Process& leader = start(3, "0", "m0");
  waitUntilElected();
  Process& second = start(3, "1", "m1");
  Process& third = start(3, "2", "m2");
  expectWhole({&leader, &second, &third});
  leader.kill();
  for (Process* other : {&second, &third}) {
    const std::string why = other->ask("trouble").value_or("");
    EXPECT_NE(why.find("rank 0 (m0) died"), std::string::npos) << why;
  }
}

TEST_F(EtcdDeaths, AMemberKilledWhileTheGroupFormsFreesItsRank) {
  Process& leader = start(3, "0", "m0");
  waitUntilElected();
  Process& victim = start(3, "1", "victim");
  waitUntilSeated(leader, "victim");
  victim.kill();
  Process& second = start(3, "1", "m1");
  Process& third = start(3, "2", "m2");
  expectWhole({&leader, &second, &third});
  EXPECT_EQ(leader.ask("trouble 500"), "none") << "nobody of this group has died";
}

TEST_F(EtcdDeaths, TheOthersFormAnewWhenTheLeaderIsKilledWhileTheyWait) {
  Process& victim = start(3, "0", "victim");
  waitUntilElected();
  Process& second = start(3, "1", "m1");
  waitUntilSeated(second, "m1");
  victim.kill();
  Process& first = start(3, "0", "m0");
  Process& third = start(3, "2", "m2");
  expectWhole({&first, &second, &third});
}

// Another member takes the last rank while one rank's holder is frozen. A frozen member does not
// answer, so the group is not complete until it counts as dead and another member has its rank.
TEST_F(EtcdDeaths, AFrozenMemberIsInNoGroupThatFormsMeanwhile) {
  Process& leader = start(3, "0", "m0");
  waitUntilElected();
  Process& victim = start(3, "1", "victim");
  waitUntilSeated(leader, "victim");
  victim.stop();
  Process& third = start(3, "2", "m2");
  Process& second = start(3, "1", "m1");
  expectWhole({&leader, &second, &third});
}

// The frozen member counts as dead. Waiting members, idle ones, and finally the frozen one itself
// get the error.
TEST_F(EtcdDeaths, AFrozenMemberIsDeadToTheOthersAndLearnsIt) {
  const auto members = run(4);
  expectWhole(members);
  members[0]->send("gather a");
  members[3]->send("gather b");
  members[1]->stop();
  members[2]->send("trouble");
  for (const std::size_t other : {0U, 2U, 3U}) {
    const std::string why = members[other]->answer().value_or("");
    EXPECT_NE(why.find("rank 1 (m1) died"), std::string::npos) << why;
  }
  members[1]->resume();
  const std::string own = members[1]->ask("trouble").value_or("");
  EXPECT_TRUE(own.starts_with("trouble ")) << own;
}

TEST_F(EtcdDeaths, ANewRunOverAKilledOneFormsAtOnceWhereItsDeathIsProven) {
  constexpr int kLongLease = 60'000;  // longer than any wait here
  for (int round = 0; round < 3; ++round) {
    const auto members = run(3, {}, kLongLease);
    expectWhole(members);
    for (Process* member : members) member->kill();
  }
  // The only member of this group dies before the group is complete.
  Process& lonely = start(3, "0", "m0", {}, kLongLease);
  waitUntilElected();
  lonely.kill();
  expectWhole(run(3, {}, kLongLease));
}

TEST_F(EtcdDeaths, ANewRunOverOneThatMayBeAliveWaitsForItsLease) {
  if (!mayUnshare({"--pid", "--fork"})) GTEST_SKIP() << "skipped: no right to make a PID namespace";
  // In its own PID namespace, a member's death is not visible from outside.
  const std::vector<std::string> hidden{"unshare", "--pid", "--fork", "--kill-child"};
  const auto members = run(2, hidden);
  expectWhole(members);
  for (Process* member : members) member->kill();
  expectWhole(run(2));
}

TEST_F(EtcdDeaths, ASecondRunIsRefusedAndTheLiveOneGoesOn) {
  const auto members = run(2);
  expectWhole(members);
  Process& second = start(2, "0", "second");
  const std::string refused = said(second);
  EXPECT_NE(refused.find("complete and running: 2 members"), std::string::npos) << refused;
  EXPECT_NE(refused.find("rank 0 (m0), rank 1 (m1)"), std::string::npos) << refused;
  members[0]->send("gather a");
  EXPECT_EQ(members[1]->ask("gather b"), "values a b");
  EXPECT_EQ(members[0]->answer(), "values a b");
}

TEST_F(EtcdDeaths, GoodbyesInAnyOrderAreNoDeaths) {
  const auto members = run(4);
  expectWhole(members);
  for (Process* member : members) {
    EXPECT_EQ(member->ask("finish"), "finished");
    EXPECT_EQ(member->ask("leave"), "left");
  }
  expectWhole(run(4));
}

TEST_F(EtcdDeaths, ADeathAfterTheLeadersGoodbyeIsStillNamed) {
  const auto members = run(3);
  expectWhole(members);
  // The server stays for the remaining two members, whichever member runs it.
  EXPECT_EQ(members[0]->ask("finish"), "finished");
  EXPECT_EQ(members[0]->ask("leave"), "left");
  members[1]->kill();
  const std::string why = members[2]->ask("trouble").value_or("");
  EXPECT_NE(why.find("rank 1 (m1) died"), std::string::npos) << why;
}

// The member with the server waits for the others, but not for ever.
TEST_F(EtcdDeaths, AMemberThatStaysLongAfterTheServersMemberLeftIsTold) {
  Process& leader = start(2, "0", "m0");
  waitUntilElected();
  Process& other = start(2, "1", "m1");
  expectWhole({&leader, &other});
  EXPECT_EQ(leader.ask("finish"), "finished");
  EXPECT_EQ(leader.ask("leave"), "left");
  const std::string why = other.ask("trouble").value_or("");
  EXPECT_NE(why.find("rank 0 (m0), which ran the group's server, has left"), std::string::npos)
      << why;
}

TEST_F(EtcdDeaths, NothingIsLeftBehind) {
  const auto members = run(3);
  expectWhole(members);
  for (Process* member : members) member->kill();
  const auto end = Clock::now() + 20s;
  std::string keys = "not looked";
  while (!keys.empty() && Clock::now() < end) keys = etcd_->ctl("get --prefix --keys-only ''");
  EXPECT_EQ(keys, "");
}

}  // namespace
}  // namespace viaduct::testing
