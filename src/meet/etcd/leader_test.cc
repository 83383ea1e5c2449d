#include "meet/etcd/leader.h"

#include <gtest/gtest.h>

#include <set>

namespace viaduct::meet::etcd {
namespace {

const base::Digest kProof{1};

Leader leaderOf(std::uint32_t size) {
  return Leader({.group = "g", .size = size, .proof = kProof, .self = 1});
}

JoinMessage join(std::uint32_t size, const std::string& name,
                 std::optional<std::uint32_t> rank = {}) {
  return {.size = size, .rank = rank, .proof = kProof, .name = name, .about = ""};
}

// Members are numbered from 1, and so are revisions. All but the `silent` answer every call at
// once.
struct Talk {
  Leader leader;
  Revision now = 0;
  std::set<MemberId> silent = {};

  Leader::LeaderOutput say(MemberId id, const UpMessage& message) {
    leader.said(id, static_cast<LeaseId>(id), ++now, message);
    return settled();
  }
  Leader::LeaderOutput vanish(MemberId id) {
    leader.vanished(id);
    return settled();
  }
  Leader::LeaderOutput answer(MemberId id, std::uint64_t call) {
    leader.answered(id, call);
    return settled();
  }
  // What is said until there is no more call.
  Leader::LeaderOutput settled() {
    Leader::LeaderOutput out = leader.take(), more = out;
    while (more.call) {
      for (const MemberId id : leader.members())
        if (!silent.contains(id)) leader.answered(id, *more.call);
      more = leader.take();
      if (more.roster) out.roster = more.roster;
      if (more.call) out.call = more.call;
      out.answers.insert(out.answers.end(), more.answers.begin(), more.answers.end());
    }
    return out;
  }
};

Talk formed(std::uint32_t size) {
  Talk talk{leaderOf(size)};
  for (MemberId id = 1; id <= size; ++id) (void)talk.say(id, join(size, "m" + std::to_string(id)));
  return talk;
}

TEST(EtcdLeader, RanksThatWereAskedForAreKeptAndTheOthersGetTheLowestFree) {
  Talk talk{leaderOf(4)};
  EXPECT_EQ(talk.say(1, join(4, "a", 1)).answers.size(), 1U) << "welcome";
  (void)talk.say(2, join(4, "b"));
  (void)talk.say(3, join(4, "c", 0));
  const auto out = talk.say(4, join(4, "d"));
  ASSERT_TRUE(out.roster);
  std::string order;
  for (const LeasedMember& leased : *out.roster) order += leased.member.name;
  EXPECT_EQ(order, "cabd");
}

TEST(EtcdLeader, RefusalsSayWhatIsWrongAndDisturbNobody) {
  Talk talk{leaderOf(2)};
  (void)talk.say(1, join(2, "a", 0));
  auto stranger = join(2, "x");
  stranger.proof = {};
  EXPECT_EQ(talk.say(5, stranger).answers.at(0).second.refused->code, Code::kDenied);
  EXPECT_EQ(talk.say(6, join(3, "x")).answers.at(0).second.refused->code, Code::kInvalid);
  EXPECT_EQ(talk.say(7, join(2, "x", 0)).answers.at(0).second.refused->code, Code::kBusy);
  EXPECT_TRUE(talk.say(2, join(2, "b")).roster);
  EXPECT_EQ(talk.say(8, join(2, "late")).answers.at(0).second.refused->code, Code::kBusy);
}

TEST(EtcdLeader, ARoundIsWholeWhenAllHaveGivenEachOfThemOnce) {
  Talk talk = formed(2);
  EXPECT_TRUE(talk.say(1, ValueMessage{1, "a"}).rounds.empty());
  EXPECT_TRUE(talk.say(1, ValueMessage{1, "again"}).rounds.empty());
  // One who gave up waiting may be a round ahead.
  EXPECT_TRUE(talk.say(1, ValueMessage{2, "c"}).rounds.empty());
  const auto first = talk.say(2, ValueMessage{1, "b"});
  ASSERT_EQ(first.rounds.size(), 1U);
  EXPECT_EQ(decodeValues(first.rounds[0].second), (std::vector<std::string>{"a", "b"}));
  const auto second = talk.say(2, ValueMessage{2, "d"});
  ASSERT_EQ(second.rounds.size(), 1U);
  EXPECT_EQ(second.rounds[0].first, 2U);
  EXPECT_EQ(decodeValues(second.rounds[0].second), (std::vector<std::string>{"c", "d"}));
}

TEST(EtcdLeader, WhatIsHeardTwiceCountsOnce) {
  Talk talk = formed(2);
  (void)talk.say(1, ValueMessage{1, "a"});
  talk.leader.said(1, 1, talk.now, ValueMessage{1, "a"});
  talk.leader.said(2, 2, 2, join(2, "m2"));
  EXPECT_TRUE(talk.leader.take().rounds.empty());
}

TEST(EtcdLeader, WhoIsHeardTwiceIsNotInItsOwnWay) {
  Talk talk{leaderOf(2)};
  (void)talk.say(1, join(2, "a", 0));
  talk.leader.said(1, 1, talk.now, join(2, "a", 0));
  EXPECT_TRUE(talk.settled().answers.empty()) << "its rank is taken by itself";
}

TEST(EtcdLeader, OneThatDiedBeforeTheRollCallIsInNoRosterAndItsSeatIsFree) {
  Talk talk{.leader = leaderOf(3), .silent = {2}};
  (void)talk.say(1, join(3, "a", 0));
  (void)talk.say(2, join(3, "dead", 1));
  const auto full = talk.say(3, join(3, "c", 2));
  EXPECT_TRUE(full.call);
  EXPECT_FALSE(full.roster) << "one has not answered";
  EXPECT_TRUE(talk.say(4, join(3, "b", 1)).answers.empty()) << "no refusal over a dead one's head";
  const auto out = talk.vanish(2);
  EXPECT_FALSE(out.trouble);
  ASSERT_TRUE(out.roster);
  EXPECT_EQ(out.roster->at(1).member.name, "b");
}

TEST(EtcdLeader, OneThatAnsweredAnEarlierCallIsCalledAgain) {
  Talk talk{.leader = leaderOf(2)};
  (void)talk.say(1, join(2, "a", 0));
  EXPECT_TRUE(talk.say(3, join(2, "rival", 0)).answers.at(0).second.refused);
  talk.silent = {1};
  const auto full = talk.say(2, join(2, "b"));
  ASSERT_TRUE(full.call);
  EXPECT_FALSE(full.roster);
  EXPECT_FALSE(talk.answer(1, *full.call - 1).roster) << "a late answer to the earlier call";
  EXPECT_FALSE(talk.answer(1, *full.call + 1).roster) << "nobody has called so";
  EXPECT_TRUE(talk.answer(1, *full.call).roster);
}

TEST(EtcdLeader, ARunIsCalledBeforeAnyoneIsRefusedBecauseOfIt) {
  Talk talk = formed(2);
  talk.silent = {2};
  EXPECT_TRUE(talk.say(7, join(2, "new")).answers.empty());
  EXPECT_TRUE(talk.say(8, join(2, "newer")).answers.empty());
  EXPECT_TRUE(talk.vanish(2).trouble) << "that run is over, and those who came form another";
  Talk alive = formed(2);
  EXPECT_EQ(alive.say(7, join(2, "new")).answers.at(0).second.refused->code, Code::kBusy);
}

TEST(EtcdLeader, WhoComesBetweenTheCallAndTheRosterGetsASeatOnlyWhenOneFallsFree) {
  Talk talk{.leader = leaderOf(2), .silent = {2}};
  (void)talk.say(1, join(2, "a"));
  (void)talk.say(2, join(2, "dead"));
  EXPECT_TRUE(talk.say(3, join(2, "late")).answers.empty());
  const auto out = talk.vanish(2);
  ASSERT_TRUE(out.roster);
  EXPECT_EQ(out.roster->at(1).member.name, "late");
}

TEST(EtcdLeader, ADeathIsNamedButNotThatOfOneWhoSaidGoodbye) {
  Talk talk = formed(3);
  EXPECT_FALSE(talk.say(2, ByeMessage{}).trouble);
  EXPECT_FALSE(talk.vanish(2).trouble);
  EXPECT_FALSE(talk.vanish(99).trouble) << "a stranger";
  const auto out = talk.vanish(3);
  ASSERT_TRUE(out.trouble);
  EXPECT_EQ(out.trouble->detail, "rank 2 (m3) died");
  EXPECT_FALSE(talk.vanish(1).trouble) << "over is over";
}

TEST(EtcdLeader, AGoodbyeWhileOthersWaitEndsTheRound) {
  Talk waiting = formed(2);
  (void)waiting.say(1, ValueMessage{1, "a"});
  EXPECT_TRUE(waiting.say(2, ByeMessage{}).trouble);
  Talk late = formed(2);
  (void)late.say(2, ByeMessage{});
  EXPECT_TRUE(late.say(1, ValueMessage{1, "a"}).trouble);
}

TEST(EtcdLeader, OneWhoGaveUpWhileTheGroupFormedLeavesItsRankFree) {
  Talk talk{leaderOf(2)};
  (void)talk.say(1, join(2, "a", 0));
  (void)talk.say(2, join(2, "b", 1));
  Talk other{leaderOf(3)};
  (void)other.say(1, join(3, "a", 0));
  (void)other.say(2, join(3, "b", 1));
  EXPECT_FALSE(other.say(2, ByeMessage{}).trouble);
  EXPECT_FALSE(other.vanish(2).trouble);
  EXPECT_FALSE(other.say(3, join(3, "c", 1)).answers.at(0).second.refused);
}

TEST(EtcdLeader, WhoTakesOverKnowsWhoIsLeftAndWhatIsSettled) {
  const std::vector<LeasedMember> leased_members{
      {1, 1, {0, "a", ""}}, {2, 2, {1, "b", ""}}, {3, 3, {2, "c", ""}}};
  Talk talk{Leader({.group = "g", .size = 3, .proof = kProof, .self = 2}, leased_members,
                   {.leader = 2, .seen = 10, .rounds = 6, .gone = {1}})};
  talk.leader.said(3, 3, 9, ValueMessage{1, "old"});
  EXPECT_FALSE(talk.leader.take().trouble);
  EXPECT_FALSE(talk.vanish(1).trouble);
  ASSERT_EQ(talk.leader.heirs().size(), 1U);
  EXPECT_EQ(talk.leader.heirs()[0].id, 3U);
  talk.now = 10;
  EXPECT_FALSE(talk.say(3, ValueMessage{6, "sent again"}).trouble) << "of a round that is over";
  EXPECT_TRUE(talk.say(4, join(3, "next run")).answers.empty()) << "waits for the end";
  EXPECT_TRUE(talk.say(3, ValueMessage{7, "new"}).trouble) << "nobody can complete that round";
}

}  // namespace
}  // namespace viaduct::meet::etcd
