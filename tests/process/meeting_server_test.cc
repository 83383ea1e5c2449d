// A meeting place in its own process is killed, frozen and restarted at its address, while members
// wait there and groups exist.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "meet/groups/group.h"
#include "meet/groups/server.h"
#include "process/process.h"
#include "support/free_port.h"
#include "support/own_names.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = "60000";
constexpr auto kDetect = "1500";  // ms

class MeetingServer : public ::testing::Test {
 protected:
  using Member = std::unique_ptr<Process>;

  void SetUp() override { startServer(); }

  void startServer() {
    server_ = std::make_unique<Process>(
        std::vector<std::string>{kProgram, "meet", "--listen", where_, "--token", "secret",
                                 "--detect", std::string(kDetect) + "ms"});
    const std::string line = server_->answer().value_or("nothing");
    ASSERT_TRUE(line.starts_with("meeting place at " + where_ + ",")) << line;
  }
  Member start(const std::string& name) const {
    return std::make_unique<Process>(
        std::vector<std::string>{kMeetingMember, where_, "secret", name, kDetect});
  }
  static std::string join(std::size_t rank, const std::string& ms = kLong) {
    return "join g 3 " + std::to_string(rank) + " " + ms;
  }
  static std::string answerOf(const Member& member) {
    return member->answer(90s).value_or("no answer");
  }
  // Expects that all members are in one group, and returns its epoch.
  static std::string expectOneGroup(const std::vector<Member>& members) {
    std::set<std::string> epochs, hashes;
    for (const Member& member : members) {
      const std::string answer = answerOf(member);
      std::istringstream in(answer);
      std::string ok, epoch, rank, hash;
      in >> ok >> epoch >> rank >> hash;
      EXPECT_EQ(ok, "ok") << answer;
      epochs.insert(epoch);
      hashes.insert(hash);
    }
    EXPECT_EQ(epochs.size(), 1U);
    EXPECT_EQ(hashes.size(), 1U);
    return *epochs.begin();
  }
  std::vector<Member> formed() const {
    std::vector<Member> members;
    for (std::size_t i = 0; i < 3; ++i) members.push_back(start("m" + std::to_string(i)));
    for (std::size_t i = 0; i < 3; ++i) members[i]->send(join(i));
    epoch_ = expectOneGroup(members);
    return members;
  }
  // All members learn of the server's end, each in its present call.
  static void expectToldBy(const std::vector<Member>& members, const std::string& why) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) members[i]->send((i == 1 ? "gather - " : "finish ") + std::string(kLong));
      const std::string answer = answerOf(members[i]);
      EXPECT_TRUE(answer.starts_with("error peer lost")) << answer;
      EXPECT_NE(answer.find(why), std::string::npos) << answer;
      EXPECT_NE(answer.find("the group has ended with its meeting place"), std::string::npos)
          << answer;
    }
  }
  void expectANewGroupOf(const std::vector<Member>& members) const {
    for (std::size_t i = 0; i < 3; ++i) members[i]->send(join(i));
    EXPECT_NE(expectOneGroup(members), epoch_);
    for (const Member& member : members) member->send(std::string("gather - ") + kLong);
    for (const Member& member : members) EXPECT_TRUE(answerOf(member).starts_with("ok"));
  }
  // Waits until the member has joined, which a probe sees by the taken rank. If the probe got the
  // rank, the member tries again. Each attempt lasts longer, in case the place is slow to list
  // members.
  void waitSeated(const Member& member, std::size_t rank) const {
    const auto probe = start("probe");
    for (int ms = 100; ms < 60'000;) {
      const std::string look = probe->ask(join(rank, std::to_string(ms)), 90s).value_or("");
      if (look.find("is taken by m") != std::string::npos) return;
      if (member->answer(0s)) member->send(join(rank));
      if (look.find(" have joined: ") == std::string::npos) ms *= 2;
    }
    FAIL() << "nobody is seated";
  }

  const std::string where_ = freeAddress();
  std::unique_ptr<Process> server_;
  mutable std::string epoch_;
};

TEST_F(MeetingServer, WaitingMembersReconnectToTheNextServer) {
  std::vector<Member> members;
  for (std::size_t i = 0; i < 2; ++i) {
    members.push_back(start("m" + std::to_string(i)));
    members[i]->send(join(i));
    waitSeated(members[i], i);
  }
  server_->kill();
  startServer();
  members.push_back(start("m2"));
  members[2]->send(join(2));
  expectOneGroup(members);
}

TEST_F(MeetingServer, ItsDeathEndsTheGroupForAllAndANewOneForms) {
  const auto members = formed();
  ASSERT_FALSE(HasFailure());
  members[0]->send(std::string("gather - ") + kLong);
  server_->kill();
  expectToldBy(members, where_ + ": meet: the meeting place closed the connection");
  startServer();
  expectANewGroupOf(members);
}

TEST_F(MeetingServer, AFrozenOneEndsTheGroupForAllAndServesAgainWhenItGoesOn) {
  const auto members = formed();
  ASSERT_FALSE(HasFailure());
  members[0]->send(std::string("gather - ") + kLong);
  server_->stop();
  expectToldBy(members, where_ + ": meet: the meeting place has been silent for");
  server_->resume();
  expectANewGroupOf(members);
}

// A new server has the port when the waiting members reconnect, and they go on waiting there.
TEST_F(MeetingServer, MembersWaitingAtAFrozenServerReconnectToTheNext) {
  std::vector<Member> members;
  members.push_back(start("m0"));
  members[0]->send(join(0));
  waitSeated(members[0], 0);
  server_->stop();
  // Gives the members time to notice the frozen server, and to try again.
  std::this_thread::sleep_for(3s);
  EXPECT_FALSE(members[0]->answer(0s)) << "it still waits";
  server_->kill();
  startServer();
  for (std::size_t i = 1; i < 3; ++i) {
    members.push_back(start("m" + std::to_string(i)));
    members[i]->send(join(i));
  }
  expectOneGroup(members);
}

TEST_F(MeetingServer, NamesArePublishedAtTheNextServerAgain) {
  const auto owner = start("owner"), seeker = start("seeker");
  EXPECT_EQ(owner->ask(std::string("publish decode-0 card ") + kLong), "ok ");
  server_->kill();
  startServer();
  EXPECT_EQ(seeker->ask(std::string("find decode-0 ") + kLong), "ok card");
}

// Thousands of connections never send a byte. In a flood, each connection that is closed is made
// again.
TEST_F(MeetingServer, StrangersKeepNoMemberOut) {
  for (const std::string how : {"idle", "flood"}) {
    Process strangers({kStrangers, where_, how == "idle" ? "2000" : "500", how});
    const std::string there = strangers.answer(60s).value_or("nothing");
    ASSERT_TRUE(there.starts_with("ok")) << there;
    std::chrono::milliseconds longest{0};
    for (int i = 0; i < 20; ++i) {
      const auto begin = Clock::now();
      const auto member = start("m");
      const std::string joined =
          member->ask(std::string("join alone 1 - ") + kLong, 90s).value_or("");
      ASSERT_TRUE(joined.starts_with("ok")) << joined;
      longest = std::max(
          longest, std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin));
      EXPECT_EQ(member->ask(std::string("finish ") + kLong, 90s), "ok ");
    }
    std::printf("%s %s strangers: a member is in within %lld ms\n", there.c_str() + 3, how.c_str(),
                static_cast<long long>(longest.count()));
  }
}

TEST(MeetingNames, ANameThatResolvesLaterIsFoundThen) {
  const auto server = meet::EmbeddedServer::start({.token = "secret"});
  ASSERT_TRUE(server) << server.error().text();
  const std::string address = (*server)->addresses().front();
  std::thread([&] {
    OwnNames names;
    if (!names.enter()) GTEST_SKIP() << "skipped: no mount namespaces";
    const meet::StopFlag go_on{false};
    const auto place = meet::openGroupPlace(
        {.where = "rank-0.bench" + address.substr(address.rfind(':')), .token = "secret"});
    ASSERT_TRUE(place) << place.error().text();
    const auto early = (*place)->join({.group = "g", .size = 1, .name = "a"}, 200ms, go_on);
    ASSERT_FALSE(early);
    for (const char* what : {"rank-0.bench", "resolve"})
      EXPECT_NE(early.error().text().find(what), std::string::npos) << early.error().text();
    std::thread later([&] { names.writeHosts("127.0.0.1 localhost rank-0.bench\n"); });
    const auto group = (*place)->join({.group = "g", .size = 1, .name = "a"}, 20s, go_on);
    EXPECT_TRUE(group) << group.error().text();
    later.join();
  }).join();
}

}  // namespace
}  // namespace viaduct::testing
