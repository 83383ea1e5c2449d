// A TCPStore as a meeting place: its errors, dead owners, and what each call costs.
#include <gtest/gtest.h>
#include <viaduct/deadline.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "meet/groups/group.h"
#include "meet/place.h"
#include "meet/tcpstore/head.h"
#include "process/process.h"
#include "support/free_port.h"
#include "support/paths.h"
#include "support/tcpstore_server.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;
using tcpstore::Dialect, tcpstore::Head;
using Fault = TcpStoreServer::Fault;

const StopFlag kGoOn{false};
constexpr auto kLong = 20s;
constexpr auto kLease = 5s;
constexpr auto kKey = "/viaduct/name/n";

std::unique_ptr<MeetingPlace> placeAt(const std::string& where) {
  auto place = openMeetingPlace({.where = "tcpstore:" + where});
  EXPECT_TRUE(place) << place.error().text();
  return std::move(*place);
}

bool mentions(const Error& error, const std::string& what) {
  return error.text().find(what) != std::string::npos;
}

class TcpStore : public ::testing::TestWithParam<Dialect> {
 protected:
  std::unique_ptr<MeetingPlace> place() const { return placeAt(server_.where()); }
  Error errorOf(Duration time) const {
    const auto begun = Clock::now();
    const auto found = place()->find("n", time, kGoOn);
    EXPECT_LT(Clock::now() - begun, time + 2s);
    EXPECT_FALSE(found);
    return found ? Error{} : found.error();
  }
  // A head whose owner answers no question, from a process on another host.
  static std::string headOf(std::uint64_t generation, const std::string& value) {
    return encodeRecord(Head{.generation = generation,
                             .owner = "gone",
                             .present = true,
                             .entry = {.identity = "another boot|1 2", .value = value}});
  }

  Head head() {
    const auto out = decodeRecord<Head>(server_.all()[kKey]);
    EXPECT_TRUE(out);
    return out ? *out : Head{};
  }

  TcpStoreServer server_{GetParam()};
};

TEST(TcpStoreAddress, AMalformedOneIsRefusedAtOnce) {
  for (const char* where : {"tcpstore:", "tcpstore:*:1", "tcpstore:a:b", "tcpstore:a:0"}) {
    const auto place = openMeetingPlace({.where = where});
    ASSERT_FALSE(place) << where;
    EXPECT_EQ(place.error().code, Code::kInvalid);
    EXPECT_TRUE(mentions(place.error(), "tcpstore:HOST:PORT")) << place.error().text();
  }
}

TEST(TcpStoreAddress, WithoutAMasterTheErrorSaysSo) {
  const std::string where = freeAddress();
  const auto found = placeAt(where)->find("n", 300ms, kGoOn);
  ASSERT_FALSE(found);
  for (const std::string& said : {where, std::string("master")})
    EXPECT_TRUE(mentions(found.error(), said)) << found.error().text();
}

TEST_P(TcpStore, AnotherProgramIsFoundOutAtOnce) {
  server_.setFault(Fault::kForeign);
  const Error why = errorOf(kLong);
  EXPECT_EQ(why.code, Code::kProtocol);
  EXPECT_TRUE(mentions(why, "another program listens there")) << why.text();
}

TEST_P(TcpStore, ASilentStoreEndsTheCallAtItsDeadline) {
  server_.setFault(Fault::kSilent);
  const Error why = errorOf(500ms);
  EXPECT_EQ(why.code, Code::kTimeout);
  EXPECT_TRUE(mentions(why, "did not answer")) << why.text();
}

TEST_P(TcpStore, ATruncatedAnswerIsNamed) {
  const auto seeker = place();
  EXPECT_FALSE(seeker->find("n", 100ms, kGoOn));  // the dialect is known
  server_.setFault(Fault::kTruncate);
  const auto found = seeker->find("n", 500ms, kGoOn);
  ASSERT_FALSE(found);
  EXPECT_TRUE(mentions(found.error(), "after 1 bytes of an answer")) << found.error().text();
}

TEST_P(TcpStore, ForeignDataUnderOurKeyIsNotBelieved) {
  server_.set(kKey, "somebody's");
  const Error why = errorOf(kLong);
  EXPECT_EQ(why.code, Code::kProtocol);
  EXPECT_TRUE(mentions(why, "foreign data")) << why.text();
  const auto entry = place()->publish("n", "v", kLong);
  ASSERT_FALSE(entry);
  EXPECT_TRUE(mentions(entry.error(), "foreign data")) << entry.error().text();
}

TEST_P(TcpStore, ATruncatedRecordIsNotBelieved) {
  const std::string whole = headOf(1, "value");
  for (const std::size_t size : {std::size_t{1}, whole.size() / 2, whole.size() - 1}) {
    server_.set(kKey, whole.substr(0, size));
    EXPECT_EQ(errorOf(kLong).code, Code::kProtocol);
  }
}

TEST_P(TcpStore, TheNameOfADeadOwnerIsNotBelievedAndFreeWithinTwoLeases) {
  server_.set(kKey, headOf(3, "stale"));
  const Error why = errorOf(1s);
  EXPECT_EQ(why.code, Code::kTimeout) << why.text();
  const auto seeker = place(), publisher = place();
  auto waiting = std::async(std::launch::async, [&] { return seeker->find("n", kLong, kGoOn); });
  const auto begun = Clock::now();
  const auto entry = publisher->publish("n", "fresh", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  EXPECT_LT(Clock::now() - begun, 2 * kLease);
  const auto found = waiting.get();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(*found, "fresh");
}

TEST_P(TcpStore, ATakenNameIsRefusedAtOnce) {
  const auto first = place(), second = place();
  const auto entry = first->publish("n", "v", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  const auto begun = Clock::now();
  const auto twin = second->publish("n", "v", kLong);
  ASSERT_FALSE(twin);
  EXPECT_EQ(twin.error().code, Code::kBusy) << twin.error().text();
  EXPECT_LT(Clock::now() - begun, kLease / 2);
}

TEST_P(TcpStore, AFrozenOwnerLosesItsNameAndLeavesItToTheNext) {
  Process frozen({kMeetingMember, "tcpstore:" + server_.where(), "", "frozen", "1000"});
  ASSERT_EQ(frozen.ask("publish n old 20000"), "ok ");
  frozen.stop();
  const auto next = place();
  const auto begun = Clock::now();
  const auto entry = next->publish("n", "new", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  EXPECT_GT(Clock::now() - begun, kLease / 2);
  frozen.resume();
  const auto seeker = place();
  for (int i = 0; i < 3; ++i) {
    const auto found = seeker->find("n", kLong, kGoOn);
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(*found, "new");
  }
}

// Otherwise the name would stay taken while this process lives, because the process answers for it.
TEST_P(TcpStore, AClaimWhoseAnswerIsLostLeavesTheNameFree) {
  const auto publisher = place();
  server_.setFault(Fault::kLoses);
  EXPECT_FALSE(publisher->publish("n", "lost", 500ms));
  server_.setFault(Fault::kNone);
  const auto begun = Clock::now();
  const auto entry = publisher->publish("n", "v", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  EXPECT_LT(Clock::now() - begun, kLease);
}

TEST_P(TcpStore, AClaimThatTheStoreCarriesOutLateLeavesTheNameFree) {
  const auto publisher = place();
  server_.setFault(Fault::kHolds);
  EXPECT_FALSE(publisher->publish("n", "late", 500ms));
  server_.setFault(Fault::kNone);
  for (const auto end = Clock::now() + kLong; !server_.all().contains(kKey);) {
    ASSERT_LT(Clock::now(), end) << "the late change is not prevented";
    std::this_thread::sleep_for(5ms);
  }
  server_.carryOutHeld();
  EXPECT_FALSE(head().present);
  EXPECT_TRUE(publisher->publish("n", "v", kLong));
}

TEST_P(TcpStore, EachCallCostsFewQueries) {
  const auto publisher = place(), seeker = place();
  const auto entry = publisher->publish("n", "v", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  EXPECT_LE(server_.queries(), 20U) << "with the search for the dialect";
  ASSERT_TRUE(seeker->find("n", kLong, kGoOn));
  const auto before = server_.queries();
  ASSERT_TRUE(seeker->find("n", kLong, kGoOn));
  EXPECT_LE(server_.queries() - before, 10U) << "with the owner's answer";
}

TEST_P(TcpStore, AnOwnersAnswersLeaveFewKeys) {
  const auto publisher = place(), seeker = place();
  const auto entry = publisher->publish("n", "v", kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(seeker->find("n", kLong, kGoOn));
  EXPECT_LE(server_.keys(), 8U);
}

// The store of an installed torch, whose version decides the dialect.
TEST(RealTorch, NamesAndGroupsMeetAtItsStore) {
  if (std::getenv("VIADUCT_TORCH") == nullptr)
    GTEST_SKIP() << "skipped: no VIADUCT_TORCH, which ./dev check --long sets";
  Process store({kServersPython, kTorchStore, std::to_string(freePort())});
  const std::string said = store.answer(120s).value_or("absent: it ended");
  if (!said.starts_with("port ")) GTEST_SKIP() << "skipped: no torch: " << said;
  const std::string where = "127.0.0.1:" + said.substr(5);
  const auto publisher = placeAt(where), seeker = placeAt(where);
  auto waiting = std::async(std::launch::async, [&] { return seeker->find("n", kLong, kGoOn); });
  auto entry = publisher->publish("n", std::string(kMaxValueBytes, 'v'), kLong);
  ASSERT_TRUE(entry) << entry.error().text();
  const auto found = waiting.get();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->size(), kMaxValueBytes);
  const auto again = seeker->find("n", kLong, kGoOn);
  ASSERT_TRUE(again) << again.error().text();
  const auto twin = seeker->publish("n", "twin", kLong);
  ASSERT_FALSE(twin);
  EXPECT_EQ(twin.error().code, Code::kBusy) << twin.error().text();
  entry->reset();
  EXPECT_FALSE(seeker->find("n", 100ms, kGoOn));
  EXPECT_TRUE(seeker->publish("n", "next", kLong));
  const auto join = [&where](std::uint32_t rank) -> Status {
    VIADUCT_TRY(const auto place, openGroupPlace({.where = "tcpstore:" + where}));
    VIADUCT_TRY(const auto group,
                place->join({.size = 3, .rank = rank, .name = "m"}, kLong, kGoOn));
    VIADUCT_CHECK(group->gather("", kLong, kGoOn));
    return group->finish(kLong);
  };
  std::vector<std::future<Status>> members;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    members.push_back(std::async(std::launch::async, join, rank));
  for (auto& member : members) {
    const Status met = member.get();
    EXPECT_TRUE(met) << met.error().text();
  }
}

INSTANTIATE_TEST_SUITE_P(Dialects, TcpStore, ::testing::Values(Dialect::kFirst, Dialect::kSecond),
                         [](const auto& dialect) {
                           return dialect.param == Dialect::kFirst ? "torch1" : "torch2";
                         });

}  // namespace
}  // namespace viaduct::testing
