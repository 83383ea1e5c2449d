// The rules of a group, without sockets and clocks.
#include "meet/groups/group_state.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace viaduct::meet::groups {
namespace {

struct Desk final : MemberConnections {
  void send(GuestId to, const PacketPtr& packet) override { sent[to].push_back(packet); }
  std::uint64_t ping(GuestId to) override { return pings[to] = ++last; }
  void say(const std::string& line) override { said.push_back(line); }

  std::optional<Error> errorOf(GuestId guest, Type type) {
    for (const PacketPtr& packet : sent[guest])
      if (packet->type == type) return base::decode<ErrorMessage>(packet->payload)->error;
    return {};
  }
  bool got(GuestId guest, Type type) {
    for (const PacketPtr& packet : sent[guest])
      if (packet->type == type) return true;
    return false;
  }

  std::map<GuestId, std::vector<PacketPtr>> sent;
  std::map<GuestId, std::uint64_t> pings;
  std::vector<std::string> said;
  std::uint64_t last = 0;
};

class GroupStateTest : public ::testing::Test {
 protected:
  void join(GuestId guest, std::uint32_t size, std::optional<std::uint32_t> rank = {}) {
    table_.join(guest,
                {.group = "g", .size = size, .rank = rank, .name = "m" + std::to_string(guest)});
  }
  void answer(GuestId guest) { table_.pong(guest, desk_.pings[guest]); }
  // Forms a complete group of the guests 1 to `size`.
  void formed(std::uint32_t size) {
    for (GuestId guest = 1; guest <= size; ++guest) join(guest, size);
    for (GuestId guest = 1; guest <= size; ++guest) answer(guest);
    ASSERT_TRUE(table_.live());
  }

  Desk desk_;
  std::uint64_t epochs_ = 100;
  base::Budget memory_{1000};
  GroupState table_{"g", desk_, epochs_, memory_};
};

TEST_F(GroupStateTest, AServerForOneGroupRefusesLaterMembers) {
  GroupState once("g", desk_, epochs_, memory_, true);
  for (GuestId guest = 1; guest <= 2; ++guest) once.join(guest, {.group = "g", .size = 2});
  for (GuestId guest = 1; guest <= 2; ++guest) once.pong(guest, desk_.pings[guest]);
  ASSERT_TRUE(once.live());
  once.finish(1);
  once.join(3, {.group = "g", .size = 2});
  EXPECT_FALSE(once.over());
  EXPECT_TRUE(desk_.sent[3].empty()) << "it waits for the end of the group";
  once.finish(2);
  EXPECT_TRUE(once.over());
  once.join(4, {.group = "g", .size = 2});
  for (const GuestId guest : {3U, 4U})
    EXPECT_EQ(desk_.errorOf(guest, Type::kRefused).value_or(Error{}).code, Code::kPeerLost);
  EXPECT_FALSE(desk_.got(1, Type::kTrouble));
}

TEST_F(GroupStateTest, ClosingEndsACompleteGroupWithTheReason) {
  formed(2);
  table_.close({.code = Code::kPeerLost, .detail = "the lease is lost"});
  for (const GuestId guest : {1U, 2U})
    EXPECT_EQ(desk_.errorOf(guest, Type::kTrouble).value_or(Error{}).detail, "the lease is lost");
  EXPECT_FALSE(table_.live());
}

TEST_F(GroupStateTest, ClosingRefusesTheMembersOfAFormingGroup) {
  join(1, 3);
  join(2, 3);
  table_.close({.code = Code::kPeerLost});
  for (const GuestId guest : {1U, 2U})
    EXPECT_EQ(desk_.errorOf(guest, Type::kRefused).value_or(Error{}).code, Code::kPeerLost);
  EXPECT_TRUE(table_.empty());
}

TEST_F(GroupStateTest, AGroupFormsOnlyAfterAllHaveAnsweredTheRollCall) {
  join(1, 2);
  join(2, 2);
  EXPECT_FALSE(table_.live());
  answer(1);
  EXPECT_FALSE(desk_.got(1, Type::kFormed));
  answer(2);
  EXPECT_TRUE(desk_.got(1, Type::kFormed) && desk_.got(2, Type::kFormed));
}

TEST_F(GroupStateTest, AnAnswerToAnEarlierRollCallDoesNotCount) {
  join(1, 2);
  join(2, 2);
  const auto old = desk_.pings[2];
  table_.gone(1, "died");
  join(3, 2);
  answer(3);
  table_.pong(2, old);
  EXPECT_FALSE(table_.live()) << "1 was part of that call";
  answer(2);
  answer(3);
  EXPECT_TRUE(table_.live());
}

TEST_F(GroupStateTest, AMemberThatDiesDuringTheRollCallLeavesItsPlaceToTheNext) {
  join(1, 2, 0);
  join(2, 2, 1);
  answer(1);
  table_.gone(2, "died");
  EXPECT_FALSE(table_.live());
  join(3, 2, 1);
  answer(1);
  answer(3);
  EXPECT_TRUE(table_.live());
  EXPECT_FALSE(desk_.got(2, Type::kFormed));
}

TEST_F(GroupStateTest, AMemberIsPingedBeforeAnotherIsRefusedBecauseOfIt) {
  join(1, 2, 0);
  join(2, 2, 0);
  EXPECT_FALSE(desk_.got(2, Type::kRefused)) << "1 may be dead";
  answer(1);
  EXPECT_EQ(desk_.errorOf(2, Type::kRefused)->code, Code::kBusy);
}

TEST_F(GroupStateTest, AnotherSizeIsRefusedWithBothSizes) {
  join(1, 2);
  join(2, 3);
  answer(1);
  const auto why = desk_.errorOf(2, Type::kRefused);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code, Code::kInvalid);
  EXPECT_EQ(why->detail, "the group forms with 2 members, as m1 requested; this member requests 3");
  join(3, 2);
  answer(1);
  answer(3);
  EXPECT_TRUE(table_.live()) << "and nobody is disturbed";
}

TEST_F(GroupStateTest, ADeadMemberMakesRoomForAnother) {
  join(1, 2, 0);
  join(2, 2, 0);
  table_.gone(1, "silent");
  EXPECT_FALSE(desk_.got(2, Type::kRefused));
  join(3, 2);
  answer(2);
  answer(3);
  EXPECT_TRUE(table_.live());
}

TEST_F(GroupStateTest, ASecondRunTakesTheNameWhenAMemberOfTheFirstIsFoundDead) {
  formed(2);
  join(11, 1);
  answer(1);
  EXPECT_FALSE(desk_.got(11, Type::kRefused)) << "2 has not answered";
  table_.gone(2, "silent");
  EXPECT_TRUE(desk_.got(1, Type::kTrouble));
  answer(11);
  EXPECT_TRUE(desk_.got(11, Type::kFormed));
}

TEST_F(GroupStateTest, OneRollCallServesAllWaitingMembers) {
  formed(3);
  const auto before = desk_.last;
  for (GuestId guest = 10; guest < 20; ++guest) join(guest, 3);
  for (int call = 0; call < 2; ++call)
    for (GuestId guest = 1; guest <= 3; ++guest) answer(guest);
  for (GuestId guest = 10; guest < 20; ++guest) EXPECT_TRUE(desk_.got(guest, Type::kRefused));
  EXPECT_EQ(desk_.last - before, 6U) << "two calls of three, not ten";
}

TEST_F(GroupStateTest, TheNextRunWaitsForGoodbyes) {
  formed(2);
  table_.finish(1);
  join(1'001, 1);
  EXPECT_FALSE(desk_.got(1'001, Type::kRefused));
  table_.finish(2);
  answer(1'001);
  EXPECT_TRUE(desk_.got(1'001, Type::kFormed));
}

TEST_F(GroupStateTest, AMemberThatLeavesAfterItsGoodbyeHasNotDied) {
  formed(2);
  table_.finish(1);
  table_.gone(1, "its connection closed");
  EXPECT_FALSE(desk_.got(2, Type::kTrouble));
  EXPECT_TRUE(table_.live());
}

TEST_F(GroupStateTest, AGoodbyeAndAGatherOfOneRoundEndTheGroup) {
  formed(2);
  EXPECT_TRUE(table_.gather(1, {.round = 0}));
  table_.finish(2);
  EXPECT_EQ(desk_.errorOf(1, Type::kTrouble)->detail,
            "rank 1 (m2) left while rank 0 (m1) waits for all");
  EXPECT_FALSE(desk_.got(2, Type::kTrouble)) << "it is not concerned any more";
}

TEST_F(GroupStateTest, AGatherAfterAnothersGoodbyeEndsTheGroup) {
  formed(2);
  table_.finish(2);
  EXPECT_TRUE(table_.gather(1, {.round = 0}));
  EXPECT_EQ(desk_.errorOf(1, Type::kTrouble)->detail,
            "rank 1 (m2) left while rank 0 (m1) waits for all");
}

TEST_F(GroupStateTest, AGatherOfAnotherRoundOrTwiceInOneIsAnError) {
  formed(2);
  EXPECT_FALSE(table_.gather(1, {.round = 1}));
  EXPECT_TRUE(table_.gather(1, {.round = 0}));
  EXPECT_FALSE(table_.gather(1, {.round = 0})) << "twice in one round";
}

TEST_F(GroupStateTest, AskNamesTheMissingMembers) {
  join(1, 4, 2);
  table_.ask(1);
  const auto text = base::decode<TextMessage>(desk_.sent[1].back()->payload)->text;
  EXPECT_EQ(text, "1 of 4 have joined: rank 2 (m1); no member requested rank 0, 1, 3");
}

// The server keeps the values of some members while it waits for the others.
TEST_F(GroupStateTest, ARoundThatDoesNotFitEndsTheGroupAtOnce) {
  formed(3);
  EXPECT_TRUE(table_.gather(1, {.round = 0, .value = std::string(600, 'x')}));
  EXPECT_TRUE(table_.gather(2, {.round = 0, .value = std::string(600, 'x')}));
  for (const GuestId guest : {1, 2, 3}) {
    const auto error = desk_.errorOf(guest, Type::kTrouble);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Code::kExhausted);
    EXPECT_NE(error->detail.find("600 bytes do not fit: 400 are left"), std::string::npos)
        << error->detail;
  }
  EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(GroupStateTest, ARoundThatIsOverMakesRoomForTheNext) {
  formed(1);
  for (std::uint64_t round = 0; round < 10; ++round)
    EXPECT_TRUE(table_.gather(1, {.round = round, .value = std::string(600, 'x')}));
  EXPECT_FALSE(desk_.got(1, Type::kTrouble));
}

}  // namespace
}  // namespace viaduct::meet::groups
