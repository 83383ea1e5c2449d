// A request that was given up has no effect if etcd gets it late, and is undone if etcd has
// executed it already. The process lives on, and its lease holds all its keys.
#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "etcd/etcd_testing.h"
#include "etcd/odd_servers.h"
#include "meet/place.h"
#include "support/etcd_server.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

// The time for a join to reach the withheld transaction on a slow machine. The test waits for all
// of it.
constexpr auto kToWhatIsKept = 3s;

struct Joined {
  std::unique_ptr<GroupPlace> place;
  Result<std::unique_ptr<Group>> group = Error{};
};

Joined join(const std::string& where, std::uint32_t size, Duration time = kLong,
            const StopFlag& stop = kGoOn, std::optional<std::uint32_t> rank = {}) {
  Joined member;
  auto place = openGroups({.where = where});
  if (!place) return member;
  member.place = std::move(*place);
  member.group =
      member.place->join({.group = "g", .size = size, .rank = rank, .name = "m"}, time, stop);
  return member;
}

class EtcdLate : public ::testing::TestWithParam<Forwarder::Keep> {
 protected:
  void SetUp() override { VIADUCT_NEEDS_ETCD(); }

  // A join that is stopped while the forwarder withholds one of its transactions. Its connection to
  // the place lives on.
  static Joined givenUp(Forwarder& way, std::uint32_t size) {
    StopFlag stop{false};
    auto coming =
        std::async(std::launch::async, [&] { return join(way.url(), size, kLong, stop); });
    way.waitUntilKept();
    stop = true;
    Joined member = coming.get();
    EXPECT_FALSE(member.group);
    return member;
  }
};

TEST_P(EtcdLate, AGroupFoundedAfterItsFounderGaveUpIsRemoved) {
  EtcdServer etcd;
  Forwarder way(etcd.port());
  way.keep(GetParam());
  const Joined gone = givenUp(way, 2);
  way.letGo();
  const Joined next = join(etcd.url(), 1);
  EXPECT_TRUE(next.group) << next.group.error().text();
}

TEST_P(EtcdLate, AGroupFoundedAfterItsFoundersDeadlineIsRemoved) {
  EtcdServer etcd;
  Forwarder way(etcd.port());
  way.keep(GetParam());
  const Joined gone = join(way.url(), 2, kToWhatIsKept);
  ASSERT_FALSE(gone.group);
  EXPECT_EQ(gone.group.error().code, Code::kTimeout) << gone.group.error().text();
  way.letGo();
  const Joined next = join(etcd.url(), 1);
  EXPECT_TRUE(next.group) << next.group.error().text();
}

// An overloaded etcd takes longer for a request than the lease lasts.
TEST(EtcdSlow, AMemberWhoseLeaseExpiredBeforeItsFirstKeyJoins) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  Forwarder way(etcd.port());
  way.keep(Forwarder::Keep::kRequest);
  auto coming = std::async(std::launch::async, [&] { return join(way.url(), 1); });
  way.waitUntilKept();
  const std::string leases = etcd.ctl("lease list");  // "found 1 leases", and their ids
  etcd.ctl("lease revoke " + leases.substr(leases.find('\n') + 1));
  way.letGo();
  const Joined member = coming.get();
  EXPECT_TRUE(member.group) << member.group.error().text();
}

// The member's process lives on, so the end of a lease cannot free the rank.
TEST(EtcdSeats, ASeatIsFreeAfterItsMembersTimeWasUp) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  const auto sit = [&](std::uint32_t rank, Duration time) {
    return join(etcd.url(), 3, time, kGoOn, rank);
  };
  auto first = std::async(std::launch::async, [&] { return sit(0, kLong); });
  while (etcd.ctl("get --prefix --keys-only /viaduct/group/g/head").empty()) {
  }
  const Joined gone = sit(1, kToWhatIsKept);
  ASSERT_FALSE(gone.group);
  expectMentions(gone.group.error(), {"2 of 3 have joined", "rank 1 (m)"});
  auto second = std::async(std::launch::async, [&] { return sit(1, kLong); });
  const Joined third = sit(2, kLong);
  EXPECT_TRUE(third.group) << third.group.error().text();
  EXPECT_TRUE(second.get().group);
  EXPECT_TRUE(first.get().group);
}

TEST_P(EtcdLate, ANamePublishedAfterItsDeadlineIsFree) {
  EtcdServer etcd;
  Forwarder way(etcd.port());
  way.keep(GetParam());
  const auto place = openMeetingPlace({.where = way.url()}),
             other = openMeetingPlace({.where = etcd.url()});
  ASSERT_TRUE(place && other);
  const auto entry = (*place)->publish("decode-0", "late", kToWhatIsKept);
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, Code::kTimeout) << entry.error().text();
  way.letGo();
  const auto found = (*other)->find("decode-0", 300ms, kGoOn);
  EXPECT_FALSE(found) << *found;
  const auto mine = (*other)->publish("decode-0", "mine", kLong);
  EXPECT_TRUE(mine) << mine.error().text();
}

// Another name of the process keeps the lease alive, so the end of the lease cannot undo the
// request.
TEST_P(EtcdLate, ANamePublishedAfterItsDeadlineIsFreeThoughItsProcessHasAnother) {
  EtcdServer etcd;
  Forwarder way(etcd.port());
  const auto place = openMeetingPlace({.where = way.url()}),
             other = openMeetingPlace({.where = etcd.url()});
  ASSERT_TRUE(place && other);
  const auto kept = (*place)->publish("kept", "card", kLong);
  ASSERT_TRUE(kept) << kept.error().text();
  way.keep(GetParam());
  const auto entry = (*place)->publish("decode-0", "late", kToWhatIsKept);
  ASSERT_FALSE(entry);
  way.letGo();
  const auto mine = (*other)->publish("decode-0", "mine", kLong);
  ASSERT_TRUE(mine) << mine.error().text();
  const auto found = (*other)->find("decode-0", kLong, kGoOn);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(*found, "mine");
  EXPECT_TRUE((*other)->find("kept", kLong, kGoOn)) << "the lease goes on";
}

// Nobody finds an entry after its end, so the end waits for etcd.
TEST(EtcdEntries, AnEntrysEndWaitsForEtcd) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  Forwarder way(etcd.port());
  way.keep(Forwarder::Keep::kRequest, "/v3/lease/revoke");
  const auto place = openMeetingPlace({.where = way.url()});
  ASSERT_TRUE(place);
  auto entry = (*place)->publish("decode-0", "card", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  const auto begun = Clock::now();
  entry->reset();
  EXPECT_GE(Clock::now() - begun, 900ms) << "but not for ever";
}

TEST(EtcdEntries, AnEntryIsMadeAgainWhenItsLeaseIsLost) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  const auto place = openMeetingPlace({.where = etcd.url()});
  ASSERT_TRUE(place);
  const auto entry = (*place)->publish("decode-0", "card", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  const std::string leases = etcd.ctl("lease list");
  etcd.ctl("lease revoke " + leases.substr(leases.find('\n') + 1, 16));
  EXPECT_EQ(etcd.ctl("get --prefix --keys-only ''"), "");
  const auto found = (*place)->find("decode-0", kLong, kGoOn);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(*found, "card");
}

INSTANTIATE_TEST_SUITE_P(Kept, EtcdLate,
                         ::testing::Values(Forwarder::Keep::kRequest, Forwarder::Keep::kAnswer),
                         [](const auto& keep) {
                           return keep.param == Forwarder::Keep::kRequest ? "BeforeEtcdHasIt"
                                                                          : "OnTheWayBack";
                         });

}  // namespace
}  // namespace viaduct::testing
