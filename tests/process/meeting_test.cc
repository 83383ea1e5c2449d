// Meeting places and members as separate processes: many start at the same instant, and are killed
// and stopped at any moment. VIADUCT_MEET_ROUNDS sets the number of rounds of random kills,
// VIADUCT_SEED the kills.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "contract/meeting_places.h"
#include "process/process.h"
#include "support/etcd_server.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMany = 64;
constexpr auto kLong = "60000";

std::uint64_t fromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

class MeetingProcesses : public ::testing::TestWithParam<PlaceKind> {
 protected:
  using Member = std::unique_ptr<Process>;

  explicit MeetingProcesses(std::chrono::milliseconds detect = 1500ms)
      : detect_(detect), running_(GetParam().start("secret", detect)) {}
  void SetUp() override {
    if (!running_) GTEST_SKIP() << "skipped: " << EtcdServer::whyAbsent();
  }

  Member start(const std::string& name) const {
    const auto options = running_->options();
    return std::make_unique<Process>(std::vector<std::string>{
        kMeetingMember, options.where, options.token, name, std::to_string(detect_.count())});
  }
  std::vector<Member> startMany(std::size_t count, const std::string& front) const {
    std::vector<Member> members;
    for (std::size_t i = 0; i < count; ++i) members.push_back(start(front + std::to_string(i)));
    return members;
  }
  static std::string join(std::size_t size, const std::string& rank = "-",
                          const std::string& ms = kLong) {
    return "join g " + std::to_string(size) + " " + rank + " " + ms;
  }
  static void sendAll(const std::vector<Member>& members, const std::string& line) {
    for (const Member& member : members) member->send(line);
  }
  static std::string answerOf(const Member& member) {
    return member->answer(90s).value_or("no answer");
  }
  // All members are in one group with one roster, and every rank exists once.
  static void expectOneGroup(const std::vector<Member>& members) {
    std::set<std::string> epochs, hashes;
    std::set<std::size_t> ranks;
    for (const Member& member : members) {
      const std::string answer = answerOf(member);
      std::istringstream in(answer);
      std::string ok, epoch, hash;
      std::size_t rank = 0;
      in >> ok >> epoch >> rank >> hash;
      ASSERT_EQ(ok, "ok") << answer;
      epochs.insert(epoch);
      hashes.insert(hash);
      ranks.insert(rank);
    }
    EXPECT_EQ(epochs.size(), 1U);
    EXPECT_EQ(hashes.size(), 1U);
    EXPECT_EQ(ranks.size(), members.size());
    EXPECT_EQ(*ranks.rbegin(), members.size() - 1);
  }
  static void expectAllOk(const std::vector<Member>& members, const std::string& line) {
    sendAll(members, line);
    for (const Member& member : members) expectOk(answerOf(member));
  }
  // Waits until the victim has joined, which a probe sees by the taken rank. If the probe got the
  // rank, the victim tries again. Each attempt lasts longer, in case the place is slow to list
  // members.
  void waitSeated(const Member& victim, std::size_t size, const std::string& rank) {
    const auto probe = start("probe");
    for (int ms = 100; ms < 60'000;) {
      const std::string look = probe->ask(join(size, rank, std::to_string(ms)), 90s).value_or("");
      if (look.find("taken by victim") != std::string::npos) return;
      if (victim->answer(0s)) victim->send(join(size, rank));
      if (look.find(" of " + std::to_string(size)) == std::string::npos) ms *= 2;
    }
    FAIL() << "nobody is seated";
  }
  static void expectOk(const std::string& answer) {
    EXPECT_EQ(answer.rfind("ok", 0), 0U) << answer;
  }

  const std::chrono::milliseconds detect_;
  std::unique_ptr<RunningPlace> running_;
};

// The detection time is long, because so many processes at once make each other slow.
class MeetingCrowds : public MeetingProcesses {
 protected:
  MeetingCrowds() : MeetingProcesses(30s) {}
};

// Each round first starts the members of an old group. Its members are killed after a random time:
// while they join, in a barrier, or in an idle group. Then the new group forms at the same name.
TEST_P(MeetingCrowds, ManyAtTheSameInstantOverTheLeftoversOfKilledRuns) {
  const std::uint64_t seed = fromEnvironment("VIADUCT_SEED", 1);
  const std::uint64_t rounds = fromEnvironment("VIADUCT_MEET_ROUNDS", 4);
  std::printf("VIADUCT_SEED=%llu, %llu rounds\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(rounds));
  base::Random random(seed);
  for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed));
    const auto left = startMany(1 + random.below(8), "old");
    const std::size_t size = left.size() + random.below(2);  // complete, or one member short
    sendAll(left, join(size));
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(30'000)));
    if (size == left.size() && random.chance(0.5)) left[0]->send(std::string("gather - ") + kLong);
    for (std::size_t i = 1; i < left.size(); ++i) left[i]->kill();
    left[0]->kill();

    const auto members = startMany(kMany, "new");
    sendAll(members, join(kMany));
    expectOneGroup(members);
    if (HasFailure()) return;
    expectAllOk(members, std::string("gather - ") + kLong);
    if (random.chance(0.5)) expectAllOk(members, std::string("finish ") + kLong);
    // else: killed as they are, when they go out of scope
  }
}

TEST_P(MeetingProcesses, AMemberKilledWhileAGroupFormsFreesItsRank) {
  const auto first = start("first"), victim = start("victim");
  first->send(join(3, "0"));
  victim->send(join(3, "1"));
  waitSeated(victim, 3, "1");
  victim->kill();
  const auto second = start("second"), third = start("third");
  second->send(join(3, "1"));
  third->send(join(3, "2"));
  for (const auto* member : {&first, &second, &third}) expectOk(answerOf(*member));
}

TEST_P(MeetingProcesses, AMemberFrozenWhileAGroupFormsLosesItsRankToANewOne) {
  const auto victim = start("victim");
  victim->send(join(2, "1"));
  waitSeated(victim, 2, "1");
  victim->stop();
  const auto first = start("first"), second = start("second");
  first->send(join(2, "0"));
  second->send(join(2, "1"));
  expectOk(answerOf(first));
  expectOk(answerOf(second));
}

TEST_P(MeetingProcesses, AKilledMemberIsNamedToAllWaitingMembers) {
  const auto members = startMany(4, "m");
  sendAll(members, join(4));
  expectOneGroup(members);
  members[0]->send(std::string("gather - ") + kLong);
  members[1]->send(std::string("gather - ") + kLong);
  const auto begun = Clock::now();
  members[2]->kill();
  for (const std::size_t i : {0U, 1U}) {
    const std::string answer = answerOf(members[i]);
    EXPECT_EQ(answer.rfind("error peer lost", 0), 0U) << answer;
    EXPECT_NE(answer.find("(m2)"), std::string::npos) << answer;
  }
  EXPECT_LT(Clock::now() - begun, 30s);
  const std::string late = members[3]->ask(std::string("gather - ") + kLong).value_or("");
  EXPECT_NE(late.find("(m2)"), std::string::npos) << late;
}

TEST_P(MeetingProcesses, AFrozenMemberIsNamedAndLearnsItWhenItGoesOn) {
  const auto members = startMany(3, "m");
  sendAll(members, join(3));
  expectOneGroup(members);
  members[1]->stop();
  members[0]->send(std::string("gather - ") + kLong);
  const std::string answer = answerOf(members[0]);
  EXPECT_EQ(answer.rfind("error peer lost", 0), 0U) << answer;
  EXPECT_NE(answer.find("(m1)"), std::string::npos) << answer;
  members[1]->resume();
  const std::string its = members[1]->ask(std::string("gather - ") + kLong).value_or("");
  EXPECT_EQ(its.rfind("error peer lost", 0), 0U) << its;
}

TEST_P(MeetingProcesses, ANameGoesWithItsProcessAndItsSuccessorTakesIt) {
  const auto seeker = start("seeker");
  auto owner = start("owner");
  EXPECT_EQ(owner->ask(std::string("publish decode-0 one ") + kLong), "ok ");
  EXPECT_EQ(seeker->ask(std::string("find decode-0 ") + kLong), "ok one");
  owner->kill();
  const auto next = start("next");
  EXPECT_EQ(next->ask(std::string("publish decode-0 two ") + kLong), "ok ");
  EXPECT_EQ(seeker->ask(std::string("find decode-0 ") + kLong), "ok two");
}

INSTANTIATE_TEST_SUITE_P(Places, MeetingCrowds, ::testing::ValuesIn(placeKinds()),
                         [](const auto& kind) { return kind.param.name; });
INSTANTIATE_TEST_SUITE_P(Places, MeetingProcesses, ::testing::ValuesIn(placeKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace viaduct::testing
