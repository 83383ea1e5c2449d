// Parcels between agents of one host.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace viaduct {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBlock = 4096, kBlocks = 64;

// An agent with memory for blocks.
struct ParcelAgent {
  explicit ParcelAgent(const std::string& name)
      : agent(*Agent::open({.name = name, .listen = {}, .detect = 10min})),
        pin(*agent.allocate(kBlock * kBlocks, {.label = "kv"})),
        blocks(*Blocks::strided(
            {.base = pin.info().address, .stride = 0, .bytes = kBlock, .count = kBlocks})) {}
  Selection of(Indices numbers) const { return {blocks, std::move(numbers)}; }
  std::span<std::byte> block(std::size_t number) const {
    return pin.bytes().subspan(number * kBlock, kBlock);
  }
  void fill(std::size_t number, int value) const {
    std::ranges::fill(block(number), static_cast<std::byte>(value));
  }
  bool holds(std::size_t number, int value) const {
    return std::ranges::all_of(block(number),
                               [&](std::byte b) { return b == static_cast<std::byte>(value); });
  }

  Agent agent;
  Pin pin;
  Blocks blocks;
};

constexpr ParcelPart kOne{.rank = 0, .component = 1}, kTwo{.rank = 0, .component = 2};

class ParcelsTest : public ::testing::Test {
 protected:
  static Peer meet(ParcelAgent& from, ParcelAgent& to) {
    auto peer = from.agent.importCard(to.agent.exportCard());
    EXPECT_TRUE(peer && peer->ready(60s));
    return *peer;
  }
  void SetUp() override {
    for (int i = 0; i < static_cast<int>(kBlocks); ++i)
      owner_.fill(static_cast<std::size_t>(i), i + 1);
  }
  PublishOptions twoParts(std::uint64_t version = 1) {
    return {.version = version, .ready = {{kOne, owner_.of({0, 1})}, {kTwo, owner_.of({5})}}};
  }
  static FetchOptions takeTwo(const ParcelAgent& at) {
    return {.into = {{kOne, at.of({10, 11})}, {kTwo, at.of({12})}}};
  }
  static FetchOptions placed(const ParcelAgent& at) {
    return {.place = [&at](const PartOffer& offer) -> Result<PartInto> {
      return PartInto{.part = offer.part, .into = at.of({offer.part.component})};
    }};
  }

  ParcelAgent owner_{"owner"}, one_{"one"}, two_{"two"};
  Peer at_one_ = meet(one_, owner_), at_two_ = meet(two_, owner_);
};

TEST_F(ParcelsTest, AllPartsArriveAndBothEndsKnow) {
  std::atomic<int> taken{0}, ended{0};
  PublishOptions options = twoParts();
  options.takers = 1;
  options.on_taken = [&](const std::string&, const ParcelEnd& end) {
    taken += end.outcome == ParcelOutcome::kWhole ? 1 : 100;
  };
  options.on_end = [&](const ParcelEnd&) { ++ended; };
  auto parcel = owner_.agent.publish("kv", std::move(options));
  ASSERT_TRUE(parcel) << parcel.error().text();
  auto fetch = one_.agent.fetch(at_one_, "kv", takeTwo(one_));
  ASSERT_TRUE(fetch) << fetch.error().text();
  const Status whole = fetch->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_TRUE(one_.holds(10, 1) && one_.holds(11, 2) && one_.holds(12, 6));
  EXPECT_EQ(fetch->end()->version, 1U);
  EXPECT_TRUE(fetch->missing().empty());
  const auto end = parcel->wait(60s);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->outcome, ParcelOutcome::kWhole);
  while (ended == 0) owner_.agent.poll();
  EXPECT_EQ(taken, 1);
}

TEST_F(ParcelsTest, AFetchForAnotherLifeOfThePublisherIsRefused) {
  auto parcel = owner_.agent.publish("kv", twoParts());
  FetchOptions right = takeTwo(one_), wrong = takeTwo(one_);
  right.owner = owner_.agent.card().agent;
  wrong.owner = one_.agent.card().agent;
  auto fetch = one_.agent.fetch(at_one_, "kv", std::move(right));
  EXPECT_TRUE(fetch->wait(60s));
  auto refused = one_.agent.fetch(at_one_, "kv", std::move(wrong));
  const Status over = refused->wait(60s);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::kInvalid);
  for (const auto& id : {owner_.agent.card().agent, one_.agent.card().agent})
    EXPECT_NE(over.error().text().find(cardIdText(id)), std::string::npos) << over.error().text();
}

TEST_F(ParcelsTest, AFetchMayComeBeforeThePublication) {
  auto fetch = one_.agent.fetch(at_one_, "kv", takeTwo(one_));
  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->wait(0ms).error().code, Code::kTimeout);
  auto parcel = owner_.agent.publish("kv", twoParts());
  ASSERT_TRUE(parcel);
  const Status whole = fetch->wait(60s);
  EXPECT_TRUE(whole) << whole.error().text();
}

TEST_F(ParcelsTest, PartsArriveOneByOneAndTheWholeOnlyAfterTheLast) {
  auto parcel = owner_.agent.publish("kv", {.version = 1, .parts = {kOne, kTwo}});
  ASSERT_TRUE(parcel);
  auto fetch = one_.agent.fetch(at_one_, "kv", placed(one_));
  ASSERT_TRUE(parcel->ready({kOne, owner_.of({7})}));
  ASSERT_TRUE(fetch->waitPart(kOne, 60s));
  EXPECT_TRUE(one_.holds(1, 8));
  EXPECT_EQ(fetch->missing(), std::vector{kTwo});
  EXPECT_EQ(parcel->missing(), std::vector{kTwo});
  EXPECT_FALSE(fetch->end());
  ASSERT_TRUE(parcel->ready({kTwo, owner_.of({9})}));
  EXPECT_FALSE(parcel->ready({kTwo, owner_.of({9})})) << "a part is ready once";
  ASSERT_TRUE(fetch->wait(60s));
  EXPECT_TRUE(one_.holds(2, 10));
}

TEST_F(ParcelsTest, APublisherThatLeavesBeforeTheLastPartLeavesNothing) {
  auto parcel = owner_.agent.publish("kv", {.version = 1, .parts = {kOne, kTwo}});
  auto fetch = one_.agent.fetch(at_one_, "kv", placed(one_));
  ASSERT_TRUE(parcel->ready({kOne, owner_.of({7})}));
  ASSERT_TRUE(fetch->waitPart(kOne, 60s));
  ASSERT_TRUE(parcel->withdraw());
  const Status over = fetch->wait(60s);
  ASSERT_FALSE(over);
  EXPECT_EQ(fetch->end()->outcome, ParcelOutcome::kCancelled) << over.error().text();
  EXPECT_EQ(parcel->wait(0ms)->outcome, ParcelOutcome::kCancelled);
}

TEST_F(ParcelsTest, AGroupHasOneEnd) {
  auto parcel = owner_.agent.publish("kv", twoParts());
  FetchOptions first = takeTwo(one_), second = takeTwo(two_);
  first.group = {.name = "decode", .size = 2, .rank = 0};
  second.group = {.name = "decode", .size = 2, .rank = 1};
  auto a = one_.agent.fetch(at_one_, "kv", std::move(first));
  ASSERT_TRUE(a->waitPart(kOne, 60s));
  ASSERT_TRUE(a->waitPart(kTwo, 60s));
  EXPECT_FALSE(a->end()) << "the other rank has not read";
  auto b = two_.agent.fetch(at_two_, "kv", std::move(second));
  ASSERT_TRUE(a->wait(60s));
  ASSERT_TRUE(b->wait(60s));
  EXPECT_EQ(a->end()->ranks, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(b->end()->ranks, a->end()->ranks);
}

TEST_F(ParcelsTest, OneRankThatFailsEndsItsGroup) {
  auto parcel = owner_.agent.publish("kv", twoParts());
  FetchOptions first = takeTwo(one_), second = placed(two_);
  first.group = {.name = "decode", .size = 2, .rank = 0};
  second.group = {.name = "decode", .size = 2, .rank = 1};
  second.place = [](const PartOffer&) -> Result<PartInto> {
    return Error{.code = Code::kExhausted, .operation = "place", .detail = "no free block"};
  };
  auto a = one_.agent.fetch(at_one_, "kv", std::move(first));
  auto b = two_.agent.fetch(at_two_, "kv", std::move(second));
  const Status at_a = a->wait(60s), at_b = b->wait(60s);
  ASSERT_FALSE(at_a);
  ASSERT_FALSE(at_b);
  EXPECT_EQ(at_a.error().code, Code::kExhausted) << at_a.error().text();
  EXPECT_EQ(a->end()->consumer, 1U);
  EXPECT_EQ(b->end()->outcome, a->end()->outcome);
  EXPECT_EQ(b->end()->part, a->end()->part);
}

TEST_F(ParcelsTest, SurvivorsGoOnIfTheGroupMayShrink) {
  auto parcel = owner_.agent.publish("kv", {.version = 1, .parts = {kOne, kTwo}});
  const auto rank = [](FetchOptions options, std::uint32_t number) {
    options.group = {.name = "decode", .size = 2, .rank = number, .at_least = 1};
    return options;
  };
  auto survivor = one_.agent.fetch(at_one_, "kv", rank(takeTwo(one_), 0));
  auto lost = two_.agent.fetch(at_two_, "kv", rank(takeTwo(two_), 1));
  ASSERT_TRUE(parcel->ready({kOne, owner_.of({0, 1})}));
  ASSERT_TRUE(lost->waitPart(kOne, 60s));
  two_.agent.close();
  ASSERT_TRUE(parcel->ready({kTwo, owner_.of({5})}));
  const Status whole = survivor->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(survivor->end()->ranks, std::vector<std::uint32_t>{0});
}

TEST_F(ParcelsTest, ANewVersionTakesTheOldOnesPlace) {
  auto old = owner_.agent.publish("weights", {.version = 3, .ready = {{kOne, owner_.of({0})}}});
  auto next = owner_.agent.publish("weights", {.version = 4, .parts = {kOne}});
  ASSERT_TRUE(old && next);
  EXPECT_FALSE(owner_.agent.publish("weights", {.version = 2, .ready = {{kOne, owner_.of({0})}}}));
  auto first = one_.agent.fetch(at_one_, "weights", placed(one_));
  ASSERT_TRUE(first->wait(60s));
  EXPECT_EQ(first->end()->version, 3U) << "version 4 is not whole";
  ASSERT_TRUE(next->ready({kOne, owner_.of({1})}));
  EXPECT_EQ(old->wait(60s)->outcome, ParcelOutcome::kSuperseded);
  FetchOptions exact = placed(one_);
  exact.version = 3;
  exact.exact = true;
  auto late = one_.agent.fetch(at_one_, "weights", std::move(exact));
  ASSERT_FALSE(late->wait(60s));
  EXPECT_EQ(late->end()->outcome, ParcelOutcome::kSuperseded);
  auto second = one_.agent.fetch(at_one_, "weights", placed(one_));
  ASSERT_TRUE(second->wait(60s));
  EXPECT_EQ(second->end()->version, 4U);
  EXPECT_TRUE(one_.holds(1, 2));
}

TEST_F(ParcelsTest, ItIsTakenByAsManyGroupsAsItHasTakers) {
  PublishOptions options = twoParts();
  options.takers = 1;
  auto parcel = owner_.agent.publish("kv", std::move(options));
  auto first = one_.agent.fetch(at_one_, "kv", takeTwo(one_));
  auto second = two_.agent.fetch(at_two_, "kv", takeTwo(two_));
  const Status a = first->wait(60s);
  ASSERT_TRUE(a) << a.error().text();
  ASSERT_TRUE(parcel->wait(60s));
  second->cancel("enough");
  EXPECT_FALSE(second->wait(60s));
}

TEST_F(ParcelsTest, PublishingTwiceIsPublishingOnce) {
  auto first = owner_.agent.publish("kv", {.version = 1, .parts = {kOne, kTwo}});
  auto again = owner_.agent.publish("kv", {.version = 1, .parts = {kTwo, kOne}});
  ASSERT_TRUE(first && again);
  ASSERT_TRUE(again->ready({kOne, owner_.of({0})}));
  EXPECT_EQ(first->missing(), std::vector{kTwo});
  const auto other = owner_.agent.publish("kv", {.version = 1, .parts = {kOne}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kInvalid);
}

TEST_F(ParcelsTest, TheLastHandleOfAParcelEndsIt) {
  auto first = owner_.agent.publish("kv", twoParts());
  {
    auto again = owner_.agent.publish("kv", {.version = 1, .parts = {kOne, kTwo}});
    ASSERT_TRUE(again) << again.error().text();
  }
  EXPECT_EQ(first->wait(0ms).error().code, Code::kTimeout) << "one handle is left";
  auto again = owner_.agent.publish("kv", {.version = 1, .parts = {kOne, kTwo}});
  ASSERT_TRUE(first->close());
  auto fetch = one_.agent.fetch(at_one_, "kv", takeTwo(one_));
  const Status whole = fetch->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  ASSERT_TRUE(again->close());
  EXPECT_EQ(again->wait(0ms)->outcome, ParcelOutcome::kCancelled);
}

TEST_F(ParcelsTest, WithdrawEndsAParcelForAllItsHandles) {
  auto first = owner_.agent.publish("kv", {.version = 1, .parts = {kOne, kTwo}});
  auto again = owner_.agent.publish("kv", {.version = 1, .parts = {kOne, kTwo}});
  ASSERT_TRUE(again->withdraw());
  EXPECT_EQ(first->wait(0ms)->outcome, ParcelOutcome::kCancelled);
  EXPECT_FALSE(first->ready({kOne, owner_.of({0, 1})}));
}

TEST_F(ParcelsTest, AfterAWithdrawalAFetchOfAnyVersionWaitsForTheNext) {
  auto parcel = owner_.agent.publish("kv", twoParts());
  ASSERT_TRUE(parcel->withdraw());
  FetchOptions exact = takeTwo(one_);
  exact.version = 1;
  exact.exact = true;
  auto refused = one_.agent.fetch(at_one_, "kv", std::move(exact));
  ASSERT_FALSE(refused->wait(60s));
  EXPECT_EQ(refused->end()->outcome, ParcelOutcome::kCancelled);
  auto fetch = one_.agent.fetch(at_one_, "kv", takeTwo(one_));
  EXPECT_EQ(fetch->wait(0ms).error().code, Code::kTimeout);
  auto next = owner_.agent.publish("kv", twoParts(2));
  const Status whole = fetch->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(fetch->end()->version, 2U);
}

TEST_F(ParcelsTest, ARankThatIsRefusedEndsItsGroupAtOnce) {
  auto parcel = owner_.agent.publish("kv", twoParts());
  FetchOptions first = takeTwo(one_), second = takeTwo(two_);
  first.group = {.name = "decode", .size = 2, .rank = 0};
  second.group = {.name = "decode", .size = 2, .rank = 1};
  second.owner = two_.agent.card().agent;
  auto a = one_.agent.fetch(at_one_, "kv", std::move(first));
  ASSERT_TRUE(a->waitPart(kOne, 60s));
  auto b = two_.agent.fetch(at_two_, "kv", std::move(second));
  const Status at_a = a->wait(60s), at_b = b->wait(60s);
  ASSERT_FALSE(at_a);
  ASSERT_FALSE(at_b);
  EXPECT_EQ(at_a.error().code, Code::kInvalid) << at_a.error().text();
  EXPECT_EQ(a->end()->consumer, 1U);
  EXPECT_EQ(b->end()->outcome, a->end()->outcome);
}

TEST_F(ParcelsTest, ASliceOfAPartCanBeTaken) {
  auto parcel = owner_.agent.publish("kv", twoParts());
  const Blocks slice = *Blocks::list(std::vector{Extent{kBlock - 100, 200}});
  const Blocks here =
      *Blocks::strided({.base = one_.pin.info().address, .stride = 0, .bytes = 200, .count = 1});
  auto fetch = one_.agent.fetch(at_one_, "kv", {.into = {{kOne, {here, {}}, slice}}});
  const Status whole = fetch->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  const auto bytes = one_.pin.bytes().first(200);
  EXPECT_TRUE(std::ranges::all_of(bytes.first(100), [](std::byte b) { return b == std::byte{1}; }));
  EXPECT_TRUE(std::ranges::all_of(bytes.last(100), [](std::byte b) { return b == std::byte{2}; }));
}

TEST_F(ParcelsTest, DigestsFindBytesThatChangedAfterReady) {
  PublishOptions options = twoParts();
  options.digests = true;
  auto parcel = owner_.agent.publish("kv", std::move(options));
  auto good = one_.agent.fetch(at_one_, "kv", takeTwo(one_));
  const Status whole = good->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  owner_.fill(5, 99);
  auto bad = one_.agent.fetch(at_one_, "kv", takeTwo(one_));
  const Status corrupt = bad->wait(60s);
  ASSERT_FALSE(corrupt);
  EXPECT_EQ(corrupt.error().code, Code::kCorrupt);
  EXPECT_EQ(bad->end()->part, kTwo);
}

// Bytes that this agent's reads have moved.
std::uint64_t movedBytes(const Agent& agent) {
  std::uint64_t out = 0;
  for (const RailStatistics& rail : agent.statistics().rails) out += rail.bytes;
  return out;
}

TEST_F(ParcelsTest, BlocksWhoseDigestsTheConsumerHasDoNotTravel) {
  PublishOptions options = twoParts();
  options.digests = true;
  auto first = owner_.agent.publish("kv", std::move(options));
  auto all = one_.agent.fetch(at_one_, "kv", takeTwo(one_));
  ASSERT_TRUE(all->wait(60s));
  const auto withHave = [&] {
    FetchOptions take = takeTwo(one_);
    for (PartInto& into : take.into) into.have = *one_.agent.digestBlocks(into.into);
    return take;
  };
  const std::uint64_t before = movedBytes(one_.agent);
  EXPECT_GE(before, 3 * kBlock);
  auto none = one_.agent.fetch(at_one_, "kv", withHave());
  const Status whole = none->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(movedBytes(one_.agent), before);
  ASSERT_TRUE(first->withdraw());
  owner_.fill(1, 77);
  options = twoParts(2);
  options.digests = true;
  auto second = owner_.agent.publish("kv", std::move(options));
  auto one = one_.agent.fetch(at_one_, "kv", withHave());
  ASSERT_TRUE(one->wait(60s));
  EXPECT_EQ(one->end()->version, 2U);
  EXPECT_EQ(movedBytes(one_.agent), before + kBlock);
  EXPECT_TRUE(one_.holds(10, 1) && one_.holds(11, 77) && one_.holds(12, 6));
}

TEST_F(ParcelsTest, AConsumerThatLiesAboutItsDigestsHarmsOnlyItself) {
  PublishOptions options = twoParts();
  options.digests = true;
  auto parcel = owner_.agent.publish("kv", std::move(options));
  FetchOptions lie = takeTwo(one_), truth = takeTwo(two_);
  lie.into[0].have = *owner_.agent.digestBlocks(owner_.of({0, 1}));
  auto lied = one_.agent.fetch(at_one_, "kv", std::move(lie));
  auto told = two_.agent.fetch(at_two_, "kv", std::move(truth));
  ASSERT_TRUE(lied->wait(60s));
  ASSERT_TRUE(told->wait(60s));
  EXPECT_FALSE(one_.holds(10, 1)) << "it said that it has the block";
  EXPECT_TRUE(one_.holds(12, 6));
  EXPECT_TRUE(two_.holds(10, 1) && two_.holds(11, 2) && two_.holds(12, 6));
}

TEST_F(ParcelsTest, WithoutDigestsOfThePublisherEverythingIsRead) {
  auto parcel = owner_.agent.publish("kv", twoParts());
  FetchOptions take = takeTwo(one_);
  take.into[0].have = *owner_.agent.digestBlocks(owner_.of({0, 1}));
  auto fetch = one_.agent.fetch(at_one_, "kv", std::move(take));
  ASSERT_TRUE(fetch->wait(60s));
  EXPECT_TRUE(one_.holds(10, 1) && one_.holds(11, 2));
}

// A consumer hears of a part in one message.
TEST_F(ParcelsTest, APartWhoseDigestsExceedAMessageIsRefused) {
  constexpr std::uint64_t kMany = kMaxNoteBytes / sizeof(Digest) + 1;
  Pin large = *owner_.agent.allocate(kMany);
  const Selection blocks{
      *Blocks::strided({.base = large.info().address, .stride = 1, .bytes = 1, .count = kMany}),
      {}};
  auto plain = owner_.agent.publish("plain", {.version = 1, .parts = {kOne}});
  EXPECT_TRUE(plain->ready({kOne, blocks}));
  auto parcel = owner_.agent.publish("kv", {.version = 1, .parts = {kOne}, .digests = true});
  const Status refused = parcel->ready({kOne, blocks});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_NE(refused.error().text().find("several parts"), std::string::npos);
  EXPECT_EQ(parcel->missing(), std::vector{kOne});
}

TEST_F(ParcelsTest, WhatCannotBeIsRefusedWithBothValues) {
  PublishOptions options = twoParts();
  options.layout = 7;
  auto parcel = owner_.agent.publish("kv", std::move(options));
  FetchOptions other = takeTwo(one_);
  other.layout = 8;
  auto fetch = one_.agent.fetch(at_one_, "kv", std::move(other));
  const Status refused = fetch->wait(60s);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("0x7"), std::string::npos) << refused.error().text();
  EXPECT_NE(refused.error().text().find("0x8"), std::string::npos) << refused.error().text();
  auto missing = one_.agent.fetch(at_one_, "kv", {.into = {{{.rank = 9}, one_.of({1})}}});
  const Status no_part = missing->wait(60s);
  ASSERT_FALSE(no_part);
  EXPECT_NE(no_part.error().text().find("rank 9"), std::string::npos) << no_part.error().text();
}

TEST_F(ParcelsTest, ADeadlineEndsAFetchThatWaits) {
  FetchOptions options = takeTwo(one_);
  options.deadline = Deadline(1ms);
  auto fetch = one_.agent.fetch(at_one_, "none", std::move(options));
  const Status expired = fetch->wait(60s);
  ASSERT_FALSE(expired);
  EXPECT_EQ(fetch->end()->outcome, ParcelOutcome::kExpired);
  EXPECT_EQ(expired.error().code, Code::kTimeout);
}

// A parcel's life limits only takers that have not asked. Takers that fetch have their own
// deadlines.
TEST_F(ParcelsTest, ALifeDoesNotEndAParcelThatAllTakersHaveAskedFor) {
  FetchOptions first = takeTwo(one_), second = takeTwo(two_);
  first.group = {.name = "decode", .size = 2, .rank = 0};
  second.group = {.name = "decode", .size = 2, .rank = 1};
  auto one = one_.agent.fetch(at_one_, "kv", std::move(first));
  ASSERT_TRUE(at_one_.note("after the fetch"));
  ASSERT_TRUE(owner_.agent.waitNote(60s));  // so the owner knows of the fetch
  PublishOptions asked = twoParts();
  asked.takers = 1;
  asked.life = 1ms;
  auto parcel = owner_.agent.publish("kv", std::move(asked));
  auto unasked = owner_.agent.publish("none", {.parts = {kOne}, .takers = 1, .life = 1ms});
  ASSERT_TRUE(parcel && unasked);
  EXPECT_EQ(unasked->wait(60s)->outcome, ParcelOutcome::kExpired);
  auto two = two_.agent.fetch(at_two_, "kv", std::move(second));
  const Status whole = two->wait(60s);
  EXPECT_TRUE(whole) << whole.error().text();
  EXPECT_TRUE(one->wait(60s));
  EXPECT_EQ(parcel->wait(60s)->outcome, ParcelOutcome::kWhole);
}

TEST_F(ParcelsTest, ALostOwnerEndsAFetchAsLost) {
  auto fetch = one_.agent.fetch(at_one_, "none", takeTwo(one_));
  ASSERT_TRUE(fetch);
  owner_.agent.close();
  ASSERT_FALSE(fetch->wait(60s));
  EXPECT_EQ(fetch->end()->outcome, ParcelOutcome::kLost);
}

TEST_F(ParcelsTest, ADrainingOwnerSendsWaitingFetchesElsewhere) {
  auto parcel = owner_.agent.publish("kv", {.version = 1, .parts = {kOne, kTwo}});
  auto running = one_.agent.fetch(at_one_, "kv", placed(one_));
  ASSERT_TRUE(parcel->ready({kOne, owner_.of({7})}));
  ASSERT_TRUE(running->waitPart(kOne, 60s));
  auto waiting = two_.agent.fetch(at_two_, "none", placed(two_));
  std::thread drain([this] { static_cast<void>(owner_.agent.drain(60s)); });
  const Status elsewhere = waiting->wait(60s);
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code, Code::kDraining) << elsewhere.error().text();
  const auto late = two_.agent.fetch(at_two_, "kv", placed(two_));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDraining);
  // A running fetch goes on to its end.
  ASSERT_TRUE(parcel->ready({kTwo, owner_.of({9})}));
  const Status whole = running->wait(60s);
  EXPECT_TRUE(whole) << whole.error().text();
  drain.join();
}

// A second rank publishes parts of the same parcel. The owner decides about fetches of these parts.
class JoinedParcelsTest : public ParcelsTest {
 protected:
  static constexpr ParcelPart kThere{.rank = 1, .component = 3};
  PublishOptions ofSecondRank(std::vector<ParcelPart> parts) {
    return {.version = 1, .owner = at_rank_, .parts = std::move(parts)};
  }
  PublishOptions ofOwner() const { return {.version = 1, .parts = {kOne, kThere}}; }

  ParcelAgent rank_{"rank 1"};
  Peer at_rank_ = meet(rank_, owner_);
  Peer rank_at_one_ = meet(one_, rank_), rank_at_two_ = meet(two_, rank_);
};

TEST_F(JoinedParcelsTest, PartsOfTwoRanksAreOneParcel) {
  auto first = owner_.agent.publish("kv", ofOwner());
  auto second = rank_.agent.publish("kv", ofSecondRank({kThere, kOne}));
  ASSERT_TRUE(first && second) << second.error().text();
  auto fetch = one_.agent.fetch(at_one_, "kv", placed(one_));
  rank_.fill(0, 77);
  ASSERT_TRUE(first->ready({kOne, owner_.of({4})}));
  ASSERT_TRUE(fetch->waitPart(kOne, 60s));
  EXPECT_EQ(fetch->missing(), std::vector{kThere});
  ASSERT_TRUE(second->ready({kThere, rank_.of({0})}));
  const Status whole = fetch->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_TRUE(one_.holds(1, 5) && one_.holds(3, 77));
  ASSERT_TRUE(first->withdraw());
  EXPECT_EQ(second->wait(60s)->outcome, ParcelOutcome::kCancelled);
}

TEST_F(JoinedParcelsTest, ARankThatPublishesAfterTheEndHearsIt) {
  auto first = owner_.agent.publish("kv", ofOwner());
  ASSERT_TRUE(first->withdraw());
  auto second = rank_.agent.publish("kv", ofSecondRank({kOne, kThere}));
  ASSERT_TRUE(second) << second.error().text();
  const auto end = second->wait(60s);
  ASSERT_TRUE(end) << end.error().text();
  EXPECT_EQ(end->outcome, ParcelOutcome::kCancelled);
}

TEST_F(JoinedParcelsTest, APublishingRankFetchesTheWholeParcelToo) {
  auto first = owner_.agent.publish("kv", ofOwner());
  auto second = rank_.agent.publish("kv", ofSecondRank({kThere, kOne}));
  rank_.fill(0, 77);
  ASSERT_TRUE(first->ready({kOne, owner_.of({4})}));
  ASSERT_TRUE(second->ready({kThere, rank_.of({0})}));
  auto fetch = rank_.agent.fetch(at_rank_, "kv", placed(rank_));
  const Status whole = fetch->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_TRUE(rank_.holds(1, 5) && rank_.holds(3, 77));
}

TEST_F(JoinedParcelsTest, RanksThatDeclareItDifferentlyAllHearIt) {
  auto first = owner_.agent.publish("kv", ofOwner());
  auto fetch = one_.agent.fetch(at_one_, "kv", placed(one_));
  auto second = rank_.agent.publish("kv", ofSecondRank({kThere}));
  ASSERT_TRUE(second);
  const auto at_second = second->wait(60s), at_first = first->wait(60s);
  const Status at_consumer = fetch->wait(60s);
  ASSERT_TRUE(at_second && at_first && !at_consumer);
  for (const std::string& text :
       {at_second->why->text(), at_first->why->text(), at_consumer.error().text()})
    EXPECT_NE(text.find("part 1 of rank 0"), std::string::npos) << text;
}

TEST_F(JoinedParcelsTest, ALostRankFailsTheParcelForAll) {
  auto first = owner_.agent.publish("kv", ofOwner());
  {
    auto second = rank_.agent.publish("kv", ofSecondRank({kOne, kThere}));
    ASSERT_TRUE(second->ready({kThere, rank_.of({0})}));
    auto fetch = one_.agent.fetch(at_one_, "kv", placed(one_));
    ASSERT_TRUE(fetch->waitPart(kThere, 60s));
    rank_.agent.close();
    const Status failed = fetch->wait(60s);
    ASSERT_FALSE(failed);
    EXPECT_EQ(fetch->end()->outcome, ParcelOutcome::kFailed) << failed.error().text();
    EXPECT_EQ(fetch->end()->part, kThere);
  }
  EXPECT_EQ(first->wait(60s)->part, kThere);
}

TEST_F(JoinedParcelsTest, ARankThatWithdrawsEndsItForAll) {
  auto first = owner_.agent.publish("kv", ofOwner());
  auto second = rank_.agent.publish("kv", ofSecondRank({kOne, kThere}));
  ASSERT_TRUE(second->ready({kThere, rank_.of({0})}));
  auto fetch = one_.agent.fetch(at_one_, "kv", placed(one_));
  ASSERT_TRUE(fetch->waitPart(kThere, 60s));
  ASSERT_TRUE(second->withdraw());
  ASSERT_FALSE(fetch->wait(60s));
  EXPECT_EQ(fetch->end()->outcome, ParcelOutcome::kCancelled);
  EXPECT_EQ(first->wait(60s)->outcome, ParcelOutcome::kCancelled);
  // A later fetch of exactly that version learns at once of the cancellation.
  FetchOptions exact = placed(one_);
  exact.version = 1;
  exact.exact = true;
  auto late = one_.agent.fetch(at_one_, "kv", std::move(exact));
  ASSERT_FALSE(late->wait(60s));
  EXPECT_EQ(late->end()->outcome, ParcelOutcome::kCancelled);
}

TEST_F(JoinedParcelsTest, ALostOwnerFreesTheBlocksOfTheOtherRanks) {
  auto second = rank_.agent.publish("kv", ofSecondRank({kOne, kThere}));
  ASSERT_TRUE(second->ready({kThere, rank_.of({0})}));
  auto fetch = one_.agent.fetch(at_one_, "kv", placed(one_));
  ASSERT_TRUE(fetch->waitPart(kThere, 60s));
  owner_.agent.close();
  ASSERT_FALSE(fetch->wait(60s));
  EXPECT_EQ(fetch->end()->outcome, ParcelOutcome::kLost);
  EXPECT_EQ(second->wait(60s)->outcome, ParcelOutcome::kLost);
}

TEST_F(ParcelsTest, AnAgentFetchesFromItself) {
  auto parcel = owner_.agent.publish("kv", twoParts());
  const Peer self = *owner_.agent.self();
  auto fetch = owner_.agent.fetch(self, "kv", takeTwo(owner_));
  const Status whole = fetch->wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_TRUE(owner_.holds(12, 6));
}

}  // namespace
}  // namespace viaduct
