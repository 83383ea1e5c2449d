// The contract of every meeting place. Members are threads of this process, each with its own
// connection to the place.
#include <gtest/gtest.h>
#include <viaduct/deadline.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "contract/lying_server.h"
#include "contract/meeting_places.h"
#include "meet/groups/group.h"
#include "meet/place.h"
#include "support/roster_hash.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

const StopFlag kGoOn{false};
// The limit of a wait for an answer that has to come, on any machine.
constexpr auto kLong = 20s;
// The most time that a member needs to join, or to get the list of missing members, on a slow
// machine.
constexpr auto kEnoughToSitDown = 2s;
constexpr auto kEnoughToSayWho = 2s;

class MeetingContract : public ::testing::TestWithParam<PlaceKind> {
 protected:
  // In these tests no member dies silently, so a thread that stands still for a while must not
  // count as dead.
  static constexpr std::chrono::milliseconds kDetect{10'000};

  void SetUp() override {
    if (!running_) GTEST_SKIP() << "skipped: no " << GetParam().name << " on this machine";
  }

  // A member: its connection to the place, and the group once it has joined.
  struct JoinedMember {
    std::unique_ptr<GroupPlace> place;
    std::unique_ptr<Group> group;
    Error error;
    std::uint64_t hash() const { return hashOf(group->roster()); }
  };

  PlaceOptions options() const { return running_->options(); }

  static JoinedMember sit(const PlaceOptions& options, const JoinRequest& request,
                          Duration time = kLong) {
    JoinedMember joined;
    auto place = openGroupPlace(options);
    if (!place) {
      joined.error = place.error();
      return joined;
    }
    joined.place = std::move(*place);
    auto group = joined.place->join(request, time, kGoOn);
    if (group)
      joined.group = std::move(*group);
    else
      joined.error = group.error();
    return joined;
  }
  std::future<JoinedMember> sitLater(const JoinRequest& request, Duration time = kLong) {
    return std::async(std::launch::async,
                      [at = options(), request, time] { return sit(at, request, time); });
  }
  // Joins in the background, again and again until the group admits the member, at most for kLong.
  // Use it if another member of the test may leave again after a short time.
  std::future<JoinedMember> insist(const JoinRequest& request) {
    return std::async(std::launch::async, [at = options(), request] {
      JoinedMember joined;
      const auto end = Clock::now() + kLong;
      do joined = sit(at, request);
      while (!joined.group && Clock::now() < end);
      return joined;
    });
  }
  // Joins until the answer is no timeout. Use it for a member that the first member's request rules
  // out, because the first may not have joined yet. A second attempt lasts longer if the place was
  // too slow.
  JoinedMember sitUntilAnswered(const JoinRequest& request) const {
    JoinedMember joined;
    Duration time = 200ms;
    do {
      joined = sit(options(), request, time);
      if (!mentions(joined.error, "1 of ")) time *= 2;
    } while (joined.error.code == Code::kTimeout && time < kLong);
    return joined;
  }
  JoinRequest request(std::uint32_t size, std::string name,
                      std::optional<std::uint32_t> rank = {}) const {
    return {.group = "g", .size = size, .rank = rank, .name = name, .about = "about " + name};
  }
  // Returns a complete group, in which no member asks for a rank.
  std::vector<JoinedMember> formed(std::uint32_t size) {
    std::vector<std::future<JoinedMember>> coming;
    for (std::uint32_t i = 0; i < size; ++i)
      coming.push_back(sitLater(request(size, "m" + std::to_string(i))));
    std::vector<JoinedMember> joined_members;
    for (auto& one : coming) joined_members.push_back(one.get());
    for (const JoinedMember& joined : joined_members)
      if (!joined.group) ADD_FAILURE() << joined.error.text();
    std::sort(joined_members.begin(), joined_members.end(),
              [](const JoinedMember& a, const JoinedMember& b) {
                return a.group && b.group && a.group->roster().rank < b.group->roster().rank;
              });
    return joined_members;
  }
  static void barrierOfAll(std::vector<JoinedMember>& joined_members) {
    std::vector<std::future<void>> all;
    for (JoinedMember& joined : joined_members)
      all.push_back(std::async(std::launch::async, [&joined] {
        const auto values = joined.group->gather("", kLong, kGoOn);
        if (!values) ADD_FAILURE() << values.error().text();
      }));
  }
  static void finishAll(std::vector<JoinedMember>& joined_members) {
    for (JoinedMember& joined : joined_members) {
      const Status finished = joined.group->finish(kLong);
      EXPECT_TRUE(finished) << finished.error().text();
    }
  }
  static bool mentions(const Error& error, const std::string& what) {
    return error.text().find(what) != std::string::npos;
  }
  // Waits until the group has ended for this member, and returns the reason.
  static Error troubleOf(const Group& group) {
    const auto end = Clock::now() + kLong;
    while (Clock::now() < end) {
      if (auto trouble = group.trouble()) return *trouble;
      std::this_thread::sleep_for(1ms);
    }
    return {.detail = "no trouble came"};
  }

  std::unique_ptr<RunningPlace> running_ = GetParam().start("secret", kDetect);
};

TEST_P(MeetingContract, AllGetTheSameRosterWithTheRanksTheyAskedFor) {
  auto a = sitLater(request(3, "a", 2));
  auto b = sitLater(request(3, "b", 0));
  const JoinedMember c = sit(options(), request(3, "c"));
  const JoinedMember first = a.get(), second = b.get();
  ASSERT_TRUE(first.group && second.group && c.group) << c.error.text();
  EXPECT_EQ(first.group->roster().rank, 2U);
  EXPECT_EQ(second.group->roster().rank, 0U);
  EXPECT_EQ(c.group->roster().rank, 1U);
  EXPECT_EQ(first.group->roster().members,
            (std::vector<Member>{{0, "b", "about b"}, {1, "c", "about c"}, {2, "a", "about a"}}));
  EXPECT_EQ(first.group->roster().members, c.group->roster().members);
  EXPECT_EQ(first.hash(), second.hash());
  EXPECT_EQ(first.hash(), c.hash());
  EXPECT_EQ(first.group->roster().epoch, c.group->roster().epoch);
}

TEST_P(MeetingContract, AGroupOfOneIsCompleteAtOnce) {
  JoinedMember joined = sit(options(), request(1, "alone"));
  ASSERT_TRUE(joined.group) << joined.error.text();
  const auto values = joined.group->gather("mine", kLong, kGoOn);
  ASSERT_TRUE(values);
  EXPECT_EQ(*values, std::vector<std::string>{"mine"});
  EXPECT_TRUE(joined.group->finish(kLong));
}

TEST_P(MeetingContract, GatherGivesEveryValueByRankRoundAfterRound) {
  auto joined_members = formed(5);
  ASSERT_FALSE(HasFailure());
  std::vector<std::future<void>> members;
  for (JoinedMember& joined : joined_members)
    members.push_back(std::async(std::launch::async, [&joined] {
      const std::uint32_t rank = joined.group->roster().rank;
      for (int round = 0; round < 20; ++round) {
        const auto mine = std::to_string(rank) + "/" + std::to_string(round) + std::string(1, '\0');
        const auto all = joined.group->gather(round % 3 == 0 ? "" : mine, kLong, kGoOn);
        ASSERT_TRUE(all) << all.error().text();
        ASSERT_EQ(all->size(), 5U);
        for (std::uint32_t other = 0; other < 5 && round % 3 != 0; ++other)
          EXPECT_EQ((*all)[other],
                    std::to_string(other) + "/" + std::to_string(round) + std::string(1, '\0'));
      }
    }));
  members.clear();
  finishAll(joined_members);
}

TEST_P(MeetingContract, LargeValuesAreGathered) {
  auto joined_members = formed(2);
  ASSERT_FALSE(HasFailure());
  const std::string large(kMaxValueBytes, 'x');
  auto other = std::async(std::launch::async,
                          [&] { return joined_members[1].group->gather(large, kLong, kGoOn); });
  const auto all = joined_members[0].group->gather("small", kLong, kGoOn);
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ((*all)[1], large);
  EXPECT_TRUE(other.get());
  const auto beyond = joined_members[0].group->gather(large + "x", kLong, kGoOn);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::kInvalid);
  finishAll(joined_members);
}

TEST_P(MeetingContract, AGatherThatTimedOutContinuesAndNamesTheMissing) {
  auto joined_members = formed(2);
  ASSERT_FALSE(HasFailure());
  const auto early = joined_members[0].group->gather("early", kEnoughToSayWho, kGoOn);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kTimeout) << early.error().text();
  EXPECT_TRUE(
      mentions(early.error(), "rank 1 (" + joined_members[1].group->roster().members[1].name + ")"))
      << early.error().text();
  auto other = std::async(std::launch::async,
                          [&] { return joined_members[1].group->gather("other", kLong, kGoOn); });
  const auto again = joined_members[0].group->gather("not looked at", kLong, kGoOn);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, (std::vector<std::string>{"early", "other"}));
  EXPECT_TRUE(other.get());
  finishAll(joined_members);
}

TEST_P(MeetingContract, StopEndsEveryWait) {
  StopFlag stop{false};
  auto place = openMeetingPlace(options());
  auto groups = openGroupPlace(options());
  ASSERT_TRUE(place && groups);
  const auto soon = [&stop] {
    return std::async(std::launch::async, [&stop] {
      std::this_thread::sleep_for(50ms);
      stop = true;
    });
  };
  auto stopped = soon();
  const auto group = (*groups)->join(request(2, "a"), kLong, stop);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, Code::kCancelled) << group.error().text();
  const auto found = (*place)->find("nobody", kLong, stop);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kCancelled) << found.error().text();
}

TEST_P(MeetingContract, AJoinThatTimesOutNamesThePresentAndFreesItsRank) {
  const JoinedMember alone = sit(options(), request(2, "first", 0), kEnoughToSitDown);
  ASSERT_FALSE(alone.group);
  EXPECT_EQ(alone.error.code, Code::kTimeout) << alone.error.text();
  EXPECT_TRUE(mentions(alone.error, "1 of 2")) << alone.error.text();
  auto again = sitLater(request(2, "second", 0));
  const JoinedMember other = sit(options(), request(2, "third", 1));
  EXPECT_TRUE(other.group) << other.error.text();
  EXPECT_TRUE(again.get().group);
}

TEST_P(MeetingContract, InvalidRequestsAreRefused) {
  EXPECT_EQ(sit(options(), request(0, "a")).error.code, Code::kInvalid);
  EXPECT_EQ(sit(options(), request(kMaxMembers + 1, "a")).error.code, Code::kInvalid);
  const JoinedMember beyond = sit(options(), request(2, "a", 2));
  EXPECT_EQ(beyond.error.code, Code::kInvalid);
  EXPECT_TRUE(mentions(beyond.error, "rank 2")) << beyond.error.text();
  auto nameless = request(2, "a");
  nameless.group.clear();
  EXPECT_EQ(sit(options(), nameless).error.code, Code::kInvalid);
  EXPECT_EQ(sit(options(), request(2, "two\nlines")).error.code, Code::kInvalid);
  auto wordy = request(2, "a");
  wordy.about = std::string(5000, 'x');
  EXPECT_EQ(sit(options(), wordy).error.code, Code::kInvalid);
}

TEST_P(MeetingContract, AnotherSizeIsRefusedAndTheOthersGoOn) {
  auto first = insist(request(2, "first"));
  // The first member sets the size.
  const JoinedMember wrong = sitUntilAnswered(request(3, "wrong"));
  EXPECT_EQ(wrong.error.code, Code::kInvalid) << wrong.error.text();
  EXPECT_TRUE(mentions(wrong.error, "first") && mentions(wrong.error, "2") &&
              mentions(wrong.error, "3"))
      << wrong.error.text();
  const JoinedMember second = sit(options(), request(2, "second"));
  EXPECT_TRUE(second.group) << second.error.text();
  EXPECT_TRUE(first.get().group);
}

TEST_P(MeetingContract, ATakenRankIsRefusedWithItsHoldersName) {
  auto first = insist(request(2, "holder", 1));
  const JoinedMember twin = sitUntilAnswered(request(2, "twin", 1));
  EXPECT_EQ(twin.error.code, Code::kBusy) << twin.error.text();
  EXPECT_TRUE(mentions(twin.error, "rank 1") && mentions(twin.error, "holder"))
      << twin.error.text();
  const JoinedMember second = sit(options(), request(2, "second", 0));
  EXPECT_TRUE(second.group) << second.error.text();
  EXPECT_TRUE(first.get().group);
}

TEST_P(MeetingContract, AWrongTokenIsRefusedAndNobodyIsDisturbed) {
  auto joined_members = formed(2);
  ASSERT_FALSE(HasFailure());
  auto stranger = options();
  for (const char* token : {"guessed", ""}) {
    stranger.token = token;
    const auto begun = Clock::now();
    const JoinedMember joined = sit(stranger, request(2, "stranger"));
    EXPECT_EQ(joined.error.code, Code::kDenied) << joined.error.text();
    EXPECT_TRUE(mentions(joined.error, "token")) << joined.error.text();
    EXPECT_LT(Clock::now() - begun, kLong) << "said at once, not at the deadline";
  }
  barrierOfAll(joined_members);
  finishAll(joined_members);
}

TEST_P(MeetingContract, ALateJoinerAndASecondRunAreRefusedAndTheLiveRunGoesOn) {
  auto joined_members = formed(2);
  ASSERT_FALSE(HasFailure());
  const JoinedMember late = sit(options(), request(2, "late"));
  EXPECT_EQ(late.error.code, Code::kBusy) << late.error.text();
  EXPECT_TRUE(mentions(late.error, "m0") && mentions(late.error, "m1")) << late.error.text();
  const JoinedMember other_run = sit(options(), request(4, "second run"));
  EXPECT_EQ(other_run.error.code, Code::kBusy) << other_run.error.text();
  barrierOfAll(joined_members);
  EXPECT_FALSE(joined_members[0].group->trouble());
  finishAll(joined_members);
}

TEST_P(MeetingContract, AfterGoodbyesTheNameIsFreeForTheNextRun) {
  std::set<std::uint64_t> epochs;
  for (int run = 0; run < 3; ++run) {
    auto joined_members = formed(3);
    ASSERT_FALSE(HasFailure());
    epochs.insert(joined_members[0].group->roster().epoch);
    finishAll(joined_members);
  }
  EXPECT_EQ(epochs.size(), 3U) << "each forming has its own epoch";
}

TEST_P(MeetingContract, AMemberThatSaidGoodbyeWaitsForTheOthersBeforeTheNextRun) {
  auto joined_members = formed(2);
  ASSERT_FALSE(HasFailure());
  ASSERT_TRUE(joined_members[0].group->finish(kLong));
  auto next = sitLater(request(1, "next run"));
  EXPECT_EQ(next.wait_for(100ms), std::future_status::timeout);
  ASSERT_TRUE(joined_members[1].group->finish(kLong));
  const JoinedMember joined = next.get();
  EXPECT_TRUE(joined.group) << joined.error.text();
}

TEST_P(MeetingContract, LeavingWithoutGoodbyeIsADeathThatAllAreTold) {
  auto joined_members = formed(4);
  ASSERT_FALSE(HasFailure());
  const Member victim = joined_members[2].group->roster().members[2];
  auto waiting = std::async(std::launch::async,
                            [&] { return joined_members[0].group->gather("", kLong, kGoOn); });
  joined_members[2].group.reset();
  const auto begun = Clock::now();
  const auto gathered = waiting.get();
  ASSERT_FALSE(gathered);
  EXPECT_EQ(gathered.error().code, Code::kPeerLost);
  for (const std::size_t i : {0U, 1U, 3U}) {
    const Error why = troubleOf(*joined_members[i].group);
    EXPECT_EQ(why.code, Code::kPeerLost) << why.text();
    EXPECT_TRUE(mentions(why, "rank 2 (" + victim.name + ")")) << why.text();
  }
  EXPECT_LT(Clock::now() - begun, kLong);
  EXPECT_FALSE(joined_members[1].group->gather("", kLong, kGoOn)) << "over is over";
  EXPECT_FALSE(joined_members[1].group->finish(kLong));
  // The survivors still hold their groups, but the name is free.
  auto next = formed(4);
  ASSERT_FALSE(HasFailure());
  finishAll(next);
}

TEST_P(MeetingContract, GoodbyeWhileOthersWaitEndsTheirWait) {
  auto joined_members = formed(2);
  ASSERT_FALSE(HasFailure());
  auto waiting = std::async(std::launch::async,
                            [&] { return joined_members[0].group->gather("", kLong, kGoOn); });
  EXPECT_TRUE(joined_members[1].group->finish(kLong));
  const auto gathered = waiting.get();
  ASSERT_FALSE(gathered);
  EXPECT_EQ(gathered.error().code, Code::kPeerLost) << gathered.error().text();
}

TEST_P(MeetingContract, AbandonTellsAllMembersTheReasonAndTheMember) {
  auto joined_members = formed(3);
  ASSERT_FALSE(HasFailure());
  auto waiting = std::async(std::launch::async,
                            [&] { return joined_members[0].group->gather("", kLong, kGoOn); });
  joined_members[1].group->abandon("the disk is full");
  const auto gathered = waiting.get();
  ASSERT_FALSE(gathered);
  for (const JoinedMember& joined : joined_members) {
    const Error why = troubleOf(*joined.group);
    EXPECT_EQ(why.code, Code::kCancelled);
    EXPECT_TRUE(mentions(why, "the disk is full") && mentions(why, "rank 1")) << why.text();
  }
}

TEST_P(MeetingContract, ARequestToStopReachesAllAndTheGroupGoesOn) {
  auto joined_members = formed(3);
  ASSERT_FALSE(HasFailure());
  for (const JoinedMember& joined : joined_members) EXPECT_FALSE(joined.group->stopRequestedBy());
  auto waiting = std::async(std::launch::async,
                            [&] { return joined_members[0].group->gather("a", kLong, kGoOn); });
  joined_members[1].group->requestStop();
  for (const JoinedMember& joined : joined_members) {
    while (!joined.group->stopRequestedBy() && !joined.group->trouble()) std::this_thread::yield();
    EXPECT_EQ(joined.group->stopRequestedBy(), joined_members[1].group->roster().rank);
    EXPECT_FALSE(joined.group->trouble());
  }
  auto second = std::async(std::launch::async,
                           [&] { return joined_members[1].group->gather("b", kLong, kGoOn); });
  const auto third = joined_members[2].group->gather("c", kLong, kGoOn);
  EXPECT_TRUE(third) << third.error().text();
  EXPECT_TRUE(waiting.get() && second.get());
  finishAll(joined_members);
}

TEST_P(MeetingContract, GroupsOfOtherNamesAndNamespacesDoNotMeet) {
  auto elsewhere = options();
  elsewhere.name_space = "/another";
  auto other_name = request(1, "c");
  other_name.group = "h";
  const JoinedMember a = sit(options(), request(1, "a")), b = sit(elsewhere, request(1, "b")),
                     c = sit(options(), other_name);
  EXPECT_TRUE(a.group) << a.error.text();
  EXPECT_TRUE(b.group) << b.error.text();
  EXPECT_TRUE(c.group) << c.error.text();
}

TEST_P(MeetingContract, ANameIsFoundOnceItIsPublishedAndVanishesWithItsEntry) {
  auto publisher = openMeetingPlace(options()), seeker = openMeetingPlace(options());
  ASSERT_TRUE(publisher && seeker);
  auto waiting =
      std::async(std::launch::async, [&] { return (*seeker)->find("decode-0", kLong, kGoOn); });
  const std::string value("card\0bytes", 10);
  auto entry = (*publisher)->publish("decode-0", value, kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  const auto found = waiting.get();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(*found, value);
  EXPECT_TRUE((*seeker)->find("decode-0", kLong, kGoOn));

  const auto taken = (*seeker)->publish("decode-0", "mine", kLong);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::kBusy) << taken.error().text();

  entry->reset();
  auto mine = (*seeker)->publish("decode-0", "mine", kLong);
  ASSERT_TRUE(mine) << mine.error().text();
  EXPECT_EQ(*(*publisher)->find("decode-0", kLong, kGoOn), "mine");
  mine->reset();
  const auto gone = (*seeker)->find("decode-0", 100ms, kGoOn);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kTimeout) << gone.error().text();
  EXPECT_TRUE(mentions(gone.error(), "decode-0")) << gone.error().text();
}

// The server would close the connection for a name beyond the limits, and the client would retry to
// its deadline.
TEST_P(MeetingContract, AnEntryBeyondTheLimitsIsRefusedAtOnce) {
  auto place = openMeetingPlace(options());
  ASSERT_TRUE(place);
  for (const std::string& name :
       {std::string(), std::string(kMaxNameBytes + 1, 'n'), std::string("two\nlines")}) {
    EXPECT_EQ((*place)->find(name, kLong, kGoOn).error().code, Code::kInvalid);
    EXPECT_EQ((*place)->publish(name, "x", kLong).error().code, Code::kInvalid);
  }
  const auto much = (*place)->publish("n", std::string(kMaxValueBytes + 1, 'v'), kLong);
  ASSERT_FALSE(much);
  EXPECT_EQ(much.error().code, Code::kInvalid) << much.error().text();
}

TEST_P(MeetingContract, AClosedPlaceTakesItsEntriesAway) {
  auto seeker = openMeetingPlace(options());
  ASSERT_TRUE(seeker);
  {
    auto publisher = openMeetingPlace(options());
    ASSERT_TRUE(publisher);
    const auto entry = (*publisher)->publish("prefill", "card", kLong);
    ASSERT_TRUE(entry);
    ASSERT_TRUE((*seeker)->find("prefill", kLong, kGoOn));
  }
  const auto again = (*seeker)->publish("prefill", "next", kLong);
  EXPECT_TRUE(again) << again.error().text();
}

// An agent that drains gives up its name before it tells its peers. They may look for a successor
// at once.
TEST_P(MeetingContract, ANameIsFoundByNobodyOnceItIsWithdrawn) {
  auto leaver = openMeetingPlace(options()), other = openMeetingPlace(options());
  ASSERT_TRUE(leaver && other);
  for (int round = 0; round < (GetParam().slow ? 3 : 20); ++round) {
    const std::string value = std::to_string(round);
    auto entry = (*leaver)->publish("leaver", value, kLong);
    ASSERT_TRUE(entry) << entry.error().text();
    ASSERT_EQ(*(*other)->find("leaver", kLong, kGoOn), value);
    entry->reset();
    auto successor = (*leaver)->publish("leaver", "next" + value, kLong);
    ASSERT_TRUE(successor) << successor.error().text();
    EXPECT_EQ(*(*other)->find("leaver", kLong, kGoOn), "next" + value);
    successor->reset();
    const auto found = (*other)->find("leaver", 1ms, kGoOn);
    EXPECT_FALSE(found) << *found << " is withdrawn";
  }
}

// The deadline may pass at each moment of a publication.
TEST_P(MeetingContract, APublicationThatRunsOutOfTimeLeavesTheNameFree) {
  auto place = openMeetingPlace(options());
  ASSERT_TRUE(place);
  const auto begun = Clock::now();
  ASSERT_TRUE((*place)->publish("n", "first", kLong));
  const Duration once = Clock::now() - begun;
  const int tries = GetParam().slow ? 10 : 30;
  for (int i = 0; i < tries; ++i)
    static_cast<void>((*place)->publish("n", std::to_string(i), once * i * 3 / 2 / tries));
  const auto entry = (*place)->publish("n", "last", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  auto seeker = openMeetingPlace(options());
  ASSERT_TRUE(seeker);
  const auto found = (*seeker)->find("n", kLong, kGoOn);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(*found, "last");
}

TEST_P(MeetingContract, TheGreatestNameAndValueAreFound) {
  auto publisher = openMeetingPlace(options()), seeker = openMeetingPlace(options());
  ASSERT_TRUE(publisher && seeker);
  const std::string name = "/" + std::string(kMaxNameBytes - 1, '%');
  std::string value(GetParam().most_value, '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i % 251);
  const auto entry = (*publisher)->publish(name, value, kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  const auto found = (*seeker)->find(name, kLong, kGoOn);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(*found, value);
}

TEST_P(MeetingContract, AnEmptyValueIsFound) {
  auto place = openMeetingPlace(options());
  ASSERT_TRUE(place);
  const auto entry = (*place)->publish("n", "", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  const auto found = (*place)->find("n", kLong, kGoOn);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(*found, "");
}

TEST_P(MeetingContract, ManyNamesOfOneProcessAreFound) {
  auto publisher = openMeetingPlace(options()), seeker = openMeetingPlace(options());
  ASSERT_TRUE(publisher && seeker);
  std::vector<std::unique_ptr<PublishedName>> entries;
  for (std::size_t i = 0; i < (GetParam().slow ? 16 : 2048); ++i) {
    auto entry = (*publisher)->publish("n" + std::to_string(i), std::to_string(i), kLong);
    ASSERT_TRUE(entry) << entry.error().text();
    entries.push_back(std::move(*entry));
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto found = (*seeker)->find("n" + std::to_string(i), kLong, kGoOn);
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(*found, std::to_string(i));
  }
  entries.clear();
  EXPECT_FALSE((*seeker)->find("n0", 1ms, kGoOn));
}

TEST_P(MeetingContract, AServerThatComesBackHasTheNamesAgain) {
  auto publisher = openMeetingPlace(options()), seeker = openMeetingPlace(options());
  ASSERT_TRUE(publisher && seeker);
  const auto entry = (*publisher)->publish("n", "value", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  ASSERT_TRUE((*seeker)->find("n", kLong, kGoOn));
  for (int round = 0; round < 2; ++round) {
    running_->kill();
    if (round == 1) running_->forget();
    running_->revive();
    const auto found = (*seeker)->find("n", kLong, kGoOn);
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(*found, "value");
  }
  const auto twin = (*seeker)->publish("n", "twin", kLong);
  ASSERT_FALSE(twin);
  EXPECT_EQ(twin.error().code, Code::kBusy) << twin.error().text();
}

TEST_P(MeetingContract, AWaitingSearchFindsANameAfterARestartOfTheServer) {
  auto publisher = openMeetingPlace(options()), seeker = openMeetingPlace(options());
  ASSERT_TRUE(publisher && seeker);
  const auto other = (*publisher)->publish("other", "value", kLong);
  ASSERT_TRUE(other && (*seeker)->find("other", kLong, kGoOn));
  auto waiting = std::async(std::launch::async, [&] { return (*seeker)->find("n", kLong, kGoOn); });
  running_->kill();
  running_->revive();
  const auto entry = (*publisher)->publish("n", "value", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  const auto found = waiting.get();
  ASSERT_TRUE(found) << found.error().text();
}

// Another program has the port of the server.
TEST_P(MeetingContract, AServerThatLiesIsNotBelievedAndEndsCallsInTime) {
  constexpr auto kEnoughToGiveUp = 5s;
  const struct {
    std::string answer;
    bool closes;
  } kLies[] = {{"", true},
               {"", false},
               {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false},
               {std::string(4096, '\xa5'), true}};
  for (const auto& lie : kLies) {
    SCOPED_TRACE(std::to_string(lie.answer.size()) + (lie.closes ? " bytes, closed" : " bytes"));
    const LyingServer liar(lie.answer, lie.closes);
    const auto place = openMeetingPlace(running_->optionsAt(liar.address()));
    ASSERT_TRUE(place);
    const auto begun = Clock::now();
    const auto found = (*place)->find("n", 1s, kGoOn);
    const auto entry = (*place)->publish("n", "value", 1s);
    EXPECT_LT(Clock::now() - begun, 2s + kEnoughToGiveUp);
    ASSERT_FALSE(found || entry);
    for (const Error& why : {found.error(), entry.error()})
      EXPECT_TRUE(mentions(why, liar.address())) << why.text();
  }
}

// Some programs can write to the meeting place, but lack the agents' secret.
TEST_P(MeetingContract, OnlyAnEntryMadeWithTheSecretIsBelieved) {
  const auto open = [&](const std::string& name) {
    Settings settings;
    settings.name = name;
    settings.secret = "secret";
    settings.meet = options().where;
    settings.detect = kDetect;
    return Agent::open(settings);
  };
  auto seeker = open("seeker"), owner = open("owner");
  ASSERT_TRUE(seeker && owner) << (seeker ? owner : seeker).error().text();
  ASSERT_TRUE(seeker->find("owner", kLong));
  const auto place = openMeetingPlace(options());
  ASSERT_TRUE(place);
  const auto copy = (*place)->find("owner", kLong, kGoOn);
  ASSERT_TRUE(copy) << copy.error().text();
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"copied", *copy},
                                    {"cut", copy->substr(0, copy->size() - 1)},
                                    {"foreign", "x"}}) {
    const auto entry = (*place)->publish(name, value, kLong);
    ASSERT_TRUE(entry) << entry.error().text();
    const auto found = seeker->find(name, kLong);
    ASSERT_FALSE(found) << name << " was taken for " << found->name();
    EXPECT_EQ(found.error().code, Code::kDenied) << found.error().text();
  }
}

INSTANTIATE_TEST_SUITE_P(Places, MeetingContract, ::testing::ValuesIn(placeKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace viaduct::testing
