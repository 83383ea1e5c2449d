// An etcd of three nodes, one or two of which are killed or frozen. Groups go on while most nodes
// run; otherwise all members get an error.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "etcd/etcd_testing.h"
#include "support/etcd_cluster.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

const StopFlag kGoOn{false};
constexpr auto kLong = 40s;
constexpr auto kLongerThanALease = 3s;
constexpr std::size_t kNodes = 3;

class EtcdClusters : public ::testing::Test {
 protected:
  struct JoinedMember {
    std::unique_ptr<GroupPlace> place;
    std::unique_ptr<Group> group;
  };

  void SetUp() override {
    VIADUCT_NEEDS_ETCD();
    etcd_.emplace(kNodes);
  }

  // Member i connects to node i first.
  JoinedMember join(std::size_t i) const {
    JoinedMember member;
    auto place = openGroups({.where = etcd_->urls(i)});
    if (!place) return member;
    member.place = std::move(*place);
    auto group = member.place->join({.group = "g",
                                     .size = kNodes,
                                     .rank = static_cast<std::uint32_t>(i),
                                     .name = "m" + std::to_string(i)},
                                    kLong, kGoOn);
    if (!group) ADD_FAILURE() << group.error().text();
    if (group) member.group = std::move(*group);
    return member;
  }
  std::future<JoinedMember> sitLater(std::size_t i) const {
    return std::async(std::launch::async, [this, i] { return join(i); });
  }
  std::vector<JoinedMember> formed() const {
    std::vector<std::future<JoinedMember>> coming;
    for (std::size_t i = 0; i < kNodes; ++i) coming.push_back(sitLater(i));
    std::vector<JoinedMember> members;
    for (auto& one : coming) members.push_back(one.get());
    return members;
  }
  static std::vector<Result<std::vector<std::string>>> gatherOfAll(
      std::vector<JoinedMember>& members) {
    std::vector<std::future<Result<std::vector<std::string>>>> all;
    for (JoinedMember& member : members)
      all.push_back(std::async(std::launch::async,
                               [&member] { return member.group->gather("v", kLong, kGoOn); }));
    std::vector<Result<std::vector<std::string>>> out;
    for (auto& one : all) out.push_back(one.get());
    return out;
  }
  static void expectBarrier(std::vector<JoinedMember>& members) {
    for (const auto& values : gatherOfAll(members)) EXPECT_TRUE(values) << values.error().text();
  }
  static void expectGoodbyes(std::vector<JoinedMember>& members) {
    for (JoinedMember& member : members) {
      const Status finished = member.group->finish(kLong);
      EXPECT_TRUE(finished) << finished.error().text();
    }
  }

  std::optional<EtcdCluster> etcd_;
};

TEST_F(EtcdClusters, AGroupOutlivesTheLeadersDeathBetweenBarriers) {
  auto members = formed();
  ASSERT_FALSE(HasFailure());
  for (int round = 0; round < 2; ++round) {
    expectBarrier(members);
    EtcdServer& leader = etcd_->node(etcd_->leader());
    leader.kill();
    expectBarrier(members);
    leader.start();
    expectBarrier(members);
  }
  expectGoodbyes(members);
}

TEST_F(EtcdClusters, AGroupFormsThoughTheLeaderDiesMeanwhile) {
  auto first = sitLater(0), second = sitLater(1);
  const auto end = Clock::now() + kLong;
  const auto elected = [&] {
    return !etcd_->node(2).ctl("get --prefix --keys-only /viaduct/group/g/").empty();
  };
  while (!elected() && Clock::now() < end) {
  }
  etcd_->node(etcd_->leader()).kill();
  std::vector<JoinedMember> members;
  members.push_back(join(2));
  members.push_back(first.get());
  members.push_back(second.get());
  ASSERT_FALSE(HasFailure());
  expectBarrier(members);
  expectGoodbyes(members);
}

TEST_F(EtcdClusters, AFrozenFollowerIsLeftForAnother) {
  auto members = formed();
  ASSERT_FALSE(HasFailure());
  EtcdServer& follower = etcd_->node((etcd_->leader() + 1) % kNodes);
  follower.stop();
  expectBarrier(members);
  std::this_thread::sleep_for(kLongerThanALease);
  expectBarrier(members);
  follower.resume();
  expectBarrier(members);
  expectGoodbyes(members);
}

// The test ends before the frozen leader continues: etcd 3.4.23 then revokes leases that it takes
// for expired, and all members lose their group.
TEST_F(EtcdClusters, AFrozenLeaderIsLeftForAnother) {
  auto members = formed();
  ASSERT_FALSE(HasFailure());
  etcd_->node(etcd_->leader()).stop();
  expectBarrier(members);
  std::this_thread::sleep_for(kLongerThanALease);
  expectBarrier(members);
  expectGoodbyes(members);
}

TEST_F(EtcdClusters, AllMembersGetTheReasonIfMostNodesAreDead) {
  auto members = formed();
  ASSERT_FALSE(HasFailure());
  const std::size_t leader = etcd_->leader();
  etcd_->node(leader).kill();
  etcd_->node((leader + 1) % kNodes).kill();
  const auto begun = Clock::now();
  // Rounds go on until the lease counts as lost.
  auto all = gatherOfAll(members);
  while (all.front() && all.back() && Clock::now() - begun < kLong) all = gatherOfAll(members);
  for (const auto& values : all) {
    ASSERT_FALSE(values);
    EXPECT_EQ(values.error().code, Code::kPeerLost) << values.error().text();
    EXPECT_NE(values.error().text().find(etcd_->node(leader).url()), std::string::npos)
        << values.error().text();
  }
  EXPECT_LT(Clock::now() - begun, kLong) << "long before the deadline";
}

}  // namespace
}  // namespace viaduct::testing
