// A request that was given up has no effect if etcd gets it late, and is undone if etcd has
// executed it already. The process lives on, and its lease holds all its keys.
#include <gtest/gtest.h>

#include <future>

#include "etcd/etcd_testing.h"
#include "etcd/odd_servers.h"
#include "meet/etcd/etcd.h"
#include "support/etcd_server.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

// The time for a join to reach the withheld transaction on a slow machine. The test waits for all
// of it.
constexpr auto kToWhatIsKept = 3s;

struct Joined {
  std::unique_ptr<MeetingPlace> place;
  Result<std::unique_ptr<Group>> group = Error{};
};

Joined join(const std::string& where, std::uint32_t size, Duration time = kLong,
            const StopFlag& stop = kGoOn) {
  Joined member;
  auto place = openEtcd({.where = where});
  if (!place) return member;
  member.place = std::move(*place);
  member.group = member.place->join({.group = "g", .size = size, .name = "m"}, time, stop);
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
  way.keep(GetParam(), 0);
  const Joined gone = givenUp(way, 2);
  way.letGo();
  const Joined next = join(etcd.url(), 1);
  EXPECT_TRUE(next.group) << next.group.error().text();
}

// The join's first transaction finds the group, and the second asks to join.
TEST_P(EtcdLate, ARankRequestedAfterItsMemberGaveUpIsFree) {
  EtcdServer etcd;
  Forwarder way(etcd.port());
  auto first = std::async(std::launch::async, [&] { return join(etcd.url(), 2); });
  while (etcd.ctl("get --prefix --keys-only /viaduct/group/g/head").empty()) {
  }
  way.keep(GetParam(), 1);
  const Joined gone = givenUp(way, 2);
  way.letGo();
  const Joined second = join(etcd.url(), 2);
  EXPECT_TRUE(second.group) << second.group.error().text();
  EXPECT_TRUE(first.get().group);
}

TEST_P(EtcdLate, ARankRequestedAfterItsDeadlineIsFree) {
  EtcdServer etcd;
  Forwarder way(etcd.port());
  auto first = std::async(std::launch::async, [&] { return join(etcd.url(), 2); });
  while (etcd.ctl("get --prefix --keys-only /viaduct/group/g/head").empty()) {
  }
  way.keep(GetParam(), 1);
  const Joined gone = join(way.url(), 2, kToWhatIsKept);
  ASSERT_FALSE(gone.group);
  EXPECT_EQ(gone.group.error().code, Code::kTimeout) << gone.group.error().text();
  way.letGo();
  const Joined second = join(etcd.url(), 2);
  EXPECT_TRUE(second.group) << second.group.error().text();
  EXPECT_TRUE(first.get().group);
}

TEST_P(EtcdLate, ANamePublishedAfterItsDeadlineIsFree) {
  EtcdServer etcd;
  Forwarder way(etcd.port());
  way.keep(GetParam(), 0);
  const auto place = openEtcd({.where = way.url()}), other = openEtcd({.where = etcd.url()});
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

// A value is sent again if its answer is lost, but not after the goodbye, because that would undo
// the goodbye.
TEST(EtcdGoodbyes, AGoodbyeComesAfterTheLastValue) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  Forwarder way(etcd.port());
  const Joined member = join(way.url(), 1);
  ASSERT_TRUE(member.group) << member.group.error().text();
  way.keep(Forwarder::Keep::kAnswer, 0);
  const auto values = (*member.group)->gather("v", kLong, kGoOn);
  ASSERT_TRUE(values) << values.error().text();
  auto finishing = std::async(std::launch::async, [&] { return (*member.group)->finish(kLong); });
  EXPECT_EQ(finishing.wait_for(300ms), std::future_status::timeout);
  way.letGo();
  const Status finished = finishing.get();
  EXPECT_TRUE(finished) << finished.error().text();
  EXPECT_EQ(etcd.ctl("get --prefix --keys-only /viaduct/group/g/"), "");
}

// Nobody finds an entry after its end, so the end waits for etcd.
TEST(EtcdEntries, AnEntrysEndWaitsForEtcd) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  Forwarder way(etcd.port());
  way.keep(Forwarder::Keep::kRequest, 1);
  const auto place = openEtcd({.where = way.url()});
  ASSERT_TRUE(place);
  auto entry = (*place)->publish("decode-0", "card", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  const auto begun = Clock::now();
  entry->reset();
  EXPECT_GE(Clock::now() - begun, 900ms) << "but not for ever";
}

INSTANTIATE_TEST_SUITE_P(Kept, EtcdLate,
                         ::testing::Values(Forwarder::Keep::kRequest, Forwarder::Keep::kAnswer),
                         [](const auto& keep) {
                           return keep.param == Forwarder::Keep::kRequest ? "BeforeEtcdHasIt"
                                                                          : "OnTheWayBack";
                         });

}  // namespace
}  // namespace viaduct::testing
