// etcd stops, dies and comes back, forgets its history, or is unreachable in the middle of a run.
// It is the only endpoint, or one of several.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "etcd/etcd_testing.h"
#include "etcd/odd_servers.h"
#include "meet/place.h"
#include "support/etcd_server.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

struct JoinedMember {
  std::unique_ptr<GroupPlace> place;
  std::unique_ptr<Group> group;
};

// A complete group of two members. The second may reach etcd through another address.
std::vector<JoinedMember> pair(const std::string& first, const std::string& second,
                               std::chrono::milliseconds detect = 5s) {
  std::vector<std::future<JoinedMember>> coming;
  for (const std::string& where : {first, second})
    coming.push_back(std::async(std::launch::async, [where, detect] {
      JoinedMember member;
      auto place = openGroups({.where = where, .detect = detect});
      if (!place) return member;
      member.place = std::move(*place);
      auto group = member.place->join({.group = "g", .size = 2, .name = "m"}, kLong, kGoOn);
      if (!group) ADD_FAILURE() << group.error().text();
      if (group) member.group = std::move(*group);
      return member;
    }));
  std::vector<JoinedMember> out;
  for (auto& one : coming) out.push_back(one.get());
  return out;
}

void gatherOfBoth(std::vector<JoinedMember>& members) {
  const auto gather = [](JoinedMember& member) {
    const auto values = member.group->gather("v", kLong, kGoOn);
    EXPECT_TRUE(values) << values.error().text();
  };
  auto other = std::async(std::launch::async, [&] { gather(members[1]); });
  gather(members[0]);
  other.get();
}

TEST(EtcdOutages, AnEtcdThatIsStoppedForAWhile) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  auto members = pair(etcd.url(), etcd.url());
  ASSERT_FALSE(::testing::Test::HasFailure());
  etcd.stop();
  const auto early = members[0].group->gather("v", 300ms, kGoOn);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kTimeout) << early.error().text();
  EXPECT_NE(early.error().text().find(etcd.url()), std::string::npos) << early.error().text();
  etcd.resume();
  gatherOfBoth(members);
}

TEST(EtcdOutages, AnEtcdThatIsKilledAndStartedAgain) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  auto members = pair(etcd.url(), etcd.url());
  ASSERT_FALSE(::testing::Test::HasFailure());
  for (int round = 0; round < 2; ++round) {
    etcd.kill();
    auto during = std::async(std::launch::async, [&] { gatherOfBoth(members); });
    etcd.start();
    during.get();
    gatherOfBoth(members);
  }
}

// The second member is cut off while the round for which it waits ends and is compacted.
TEST(EtcdOutages, HistoryThatIsCompactedWhileAMemberIsCutOff) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  Forwarder way(etcd.port());
  auto members = pair(etcd.url(), way.url());
  ASSERT_FALSE(::testing::Test::HasFailure());
  for (int round = 0; round < 3; ++round) {
    gatherOfBoth(members);
    const auto given = members[1].group->gather("v", 100ms, kGoOn);
    ASSERT_FALSE(given);
    way.cut();
    const auto values = members[0].group->gather("v", 500ms, kGoOn);
    for (int i = 0; i < 3; ++i) etcd.ctl("put junk x");
    const std::string status = etcd.ctl("get junk -w fields");
    const std::size_t at = status.find("\"Revision\" : ");
    ASSERT_NE(at, std::string::npos) << status;
    etcd.ctl("compact " + std::to_string(std::stol(status.substr(at + 13))));
    way.mend();
    auto first = std::async(std::launch::async, [&] {
      return values ? Result<std::vector<std::string>>(*values)
                    : members[0].group->gather("v", kLong, kGoOn);
    });
    const auto late = members[1].group->gather("v", kLong, kGoOn);
    EXPECT_TRUE(late) << late.error().text();
    EXPECT_TRUE(first.get());
  }
}

// One watch is open, and others open, while etcd compacts all its history.
TEST(EtcdOutages, HistoryThatIsCompactedAllTheTime) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  std::atomic<bool> stop{false};
  std::thread compacting([&] {
    while (!stop) {
      const std::string status = etcd.ctl("put junk x -w fields");
      etcd.ctl("compact " + std::to_string(std::stol(status.substr(status.find("on\" : ") + 6))));
    }
  });
  for (int round = 0; round < 5; ++round) {
    const auto place = openMeetingPlace({.where = etcd.url()});
    auto seeking =
        std::async(std::launch::async, [&] { return (*place)->find("n", kLong, kGoOn); });
    auto members = pair(etcd.url(), etcd.url());
    if (::testing::Test::HasFailure()) break;
    for (int i = 0; i < 20; ++i) gatherOfBoth(members);
    const auto entry = (*place)->publish("n", "x", kLong);
    EXPECT_TRUE(entry) << entry.error().text();
    EXPECT_TRUE(seeking.get());
    for (JoinedMember& member : members) {
      const Status finished = member.group->finish(kLong);
      EXPECT_TRUE(finished) << finished.error().text();
    }
  }
  stop = true;
  compacting.join();
}

// etcd has executed the request, but its answer is lost, so the member asks again.
TEST(EtcdOutages, AnswersThatAreLostOnTheWay) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  for (int round = 0; round < 5; ++round) {
    Forwarder one(etcd.port()), other(etcd.port());
    one.loseAnswers();
    if (round > 0) other.loseAnswers();
    auto members = pair(one.url(), other.url());
    ASSERT_FALSE(::testing::Test::HasFailure()) << round;
    gatherOfBoth(members);
    gatherOfBoth(members);
    for (JoinedMember& member : members) {
      const Status finished = member.group->finish(kLong);
      EXPECT_TRUE(finished) << finished.error().text();
    }
  }
}

TEST(EtcdOutages, AnEndpointThatBreaksInTheMiddleIsLeftForAnother) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  auto way = std::make_unique<Forwarder>(etcd.port());
  auto members = pair(way->url() + "," + etcd.url(), etcd.url());
  ASSERT_FALSE(::testing::Test::HasFailure());
  gatherOfBoth(members);
  way->cut();
  gatherOfBoth(members);
  gatherOfBoth(members);
}

void expectLost(const std::vector<JoinedMember>& members) {
  for (const JoinedMember& member : members) {
    const auto end = Clock::now() + kLong;
    while (!member.group->trouble() && Clock::now() < end) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(member.group->trouble());
    EXPECT_EQ(member.group->trouble()->code, Code::kPeerLost) << member.group->trouble()->text();
  }
}

// Both members lose their leases, and their remaining writes have no lease.
TEST(EtcdOutages, MembersThatAreCutOffForLongLeaveNothingBehind) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  Forwarder way(etcd.port());
  auto members = pair(way.url(), way.url(), 1s);
  ASSERT_FALSE(::testing::Test::HasFailure());
  way.cut();
  expectLost(members);
  way.mend();
  members.clear();
  EXPECT_EQ(etcd.ctl("get --prefix --keys-only ''"), "");
}

TEST(EtcdOutages, ALeaseThatEtcdRevokedIsReported) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  auto members = pair(etcd.url(), etcd.url());
  ASSERT_FALSE(::testing::Test::HasFailure());
  const std::string leases = etcd.ctl("lease list");
  for (std::size_t at = leases.find('\n'); at != std::string::npos && at + 1 < leases.size();
       at = leases.find('\n', at + 1))
    etcd.ctl("lease revoke " + leases.substr(at + 1, leases.find('\n', at + 1) - at - 1));
  expectLost(members);
}

}  // namespace
}  // namespace viaduct::testing
