// A process is killed or stopped in the middle of a parcel. The other end learns one end, its
// blocks are free, and no byte of another version counts as whole.
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "process/eight_layers.h"
#include "process/pair.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kEnds = 20s;
constexpr const char* kVictimFetches = "fetch p survivor data 65536";

class ParcelEnds : public ::testing::TestWithParam<DataPath> {
 protected:
  Selection blocksOf(const Survivor::Memory& memory) const {
    return {*Blocks::strided({.base = memory.pin->info().address,
                              .stride = 0,
                              .bytes = Survivor::kBlock,
                              .count = memory.pin->size() / Survivor::kBlock}),
            {}};
  }
  PublishedParcel publish(const Survivor::Memory& memory) {
    auto parcel = survivor_.agent().publish(
        "p", {.version = 1,
              .ready = {{{}, blocksOf(memory)}},
              .takers = 1,
              .on_taken = [this](const std::string&, const ParcelEnd& end) { taken_ = end; }});
    EXPECT_TRUE(parcel) << parcel.error().text();
    return *std::move(parcel);
  }
  ParcelFetch fetch(const Survivor::Memory& memory) {
    auto fetch = survivor_.agent().fetch(survivor_.peer(), "p", {.into = {{{}, blocksOf(memory)}}});
    EXPECT_TRUE(fetch) << fetch.error().text();
    return *std::move(fetch);
  }
  // The victim publishes "data" with that value, and the survivor begins to fetch it.
  void beginFetch(const Survivor::Memory& memory, std::optional<ParcelFetch>& into) {
    victim_->must("fill data 7");
    victim_->must("publish p data 65536");
    memory.fill(0);
    into.emplace(fetch(memory));
  }

  Survivor survivor_{GetParam(), 2s};
  std::optional<ParcelEnd> taken_;
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
};

TEST_P(ParcelEnds, AKilledConsumerFreesTheBlocks) {
  const auto memory = survivor_.memory(Survivor::kData, "source");
  PublishedParcel parcel = publish(memory);
  victim_->must(kVictimFetches);
  victim_->process().kill();
  const auto killed = Clock::now();
  const auto end = parcel.wait(kEnds);
  ASSERT_TRUE(end) << end.error().text();
  std::printf("the blocks are free after %lld ms\n", static_cast<long long>(since(killed)));
  EXPECT_TRUE(parcel.withdraw());
  victim_ = survivor_.start();
  survivor_.expectWorks(*victim_);
}

TEST_P(ParcelEnds, AKilledPublisherEndsTheFetch) {
  const auto memory = survivor_.memory(Survivor::kData, "target");
  std::optional<ParcelFetch> fetch;
  beginFetch(memory, fetch);
  victim_->process().kill();
  const auto killed = Clock::now();
  const Status whole = fetch->wait(kEnds);
  std::printf("%s after %lld ms\n", parcelOutcomeName(fetch->end()->outcome),
              static_cast<long long>(since(killed)));
  if (whole) {  // the last byte had come
    EXPECT_EQ(memory.differ(7), 0);
  }
  // The restarted process publishes a parcel with the same name and the same version.
  victim_ = survivor_.start();
  beginFetch(memory, fetch);
  const Status again = fetch->wait(kEnds);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(memory.differ(7), 0);
}

TEST_P(ParcelEnds, AStoppedPublisherEndsTheFetch) {
  const auto memory = survivor_.memory(Survivor::kData, "target");
  std::optional<ParcelFetch> fetch;
  victim_->process().stop();
  fetch.emplace(this->fetch(memory));  // the owner will never hear of it
  const Status lost = fetch->wait(kEnds);
  ASSERT_FALSE(lost);
  EXPECT_EQ(fetch->end()->outcome, ParcelOutcome::kLost) << lost.error().text();
  victim_->process().resume();
  const Status ready = survivor_.peer().ready(kEnds);
  ASSERT_TRUE(ready) << ready.error().text();
  beginFetch(memory, fetch);
  const Status whole = fetch->wait(kEnds);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(memory.differ(7), 0);
}

// The source of a request is lost after three layers of eight.
class LayersEnd : public ParcelEnds {
 protected:
  void SetUp() override {
    victim_->must("fill small 7");
    victim_->must("layers p small 3");
    const auto layout = eightLayers(memory_.pin->info().address);
    const std::array both{KvBlocks{.source = {0, 1}, .destination = {1, 0}}};
    const auto layers = KvLayers::plan(eightLayers(0), layout);
    ASSERT_TRUE(layers) << layers.error().text();
    auto fetch = survivor_.agent().fetch(survivor_.peer(), "p", {.into = *layers->into(both)});
    ASSERT_TRUE(fetch) << fetch.error().text();
    fetch_.emplace(*std::move(fetch));
    for (std::uint32_t layer = 0; layer < 3; ++layer)
      ASSERT_TRUE(fetch_->waitPart({.component = layer}, kEnds));
  }
  void expectLost() {
    const Status missing = fetch_->waitPart({.component = 3}, kEnds);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::kPeerLost) << missing.error().text();
    EXPECT_EQ(fetch_->end()->outcome, ParcelOutcome::kLost);
    EXPECT_EQ(fetch_->missing().size(), 5U);
    memory_.fill(0);  // nothing of the fetch writes to it any more
  }

  const Survivor::Memory memory_ = survivor_.memory(Survivor::kSmall, "target");
  std::optional<ParcelFetch> fetch_;
};

TEST_P(LayersEnd, WithAKilledSource) {
  victim_->process().kill();
  expectLost();
  victim_ = survivor_.start();
  survivor_.expectWorks(*victim_);
}

TEST_P(LayersEnd, WithAFrozenSource) {
  victim_->process().stop();
  expectLost();
  victim_->process().resume();
  const Status ready = survivor_.peer().ready(kEnds);
  ASSERT_TRUE(ready) << ready.error().text();
  survivor_.expectWorks(*victim_);
  EXPECT_EQ(memory_.differ(0), 0);
}

INSTANTIATE_TEST_SUITE_P(Over, LayersEnd, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

TEST_P(ParcelEnds, AStoppedConsumerKeepsNoBlocks) {
  const auto memory = survivor_.memory(Survivor::kData, "source");
  memory.fill(3);
  PublishedParcel parcel = publish(memory);
  victim_->must(kVictimFetches);
  victim_->process().stop();
  const Status withdrawn = parcel.withdraw();
  if (withdrawn) {
    memory.fill(9);  // used for something else at once
  } else {
    EXPECT_EQ(withdrawn.error().code, Code::kPeerLost) << withdrawn.error().text();
  }
  victim_->process().resume();
  const std::string outcome = victim_->must("fetched p 20000");
  EXPECT_NE(outcome, "running");
  if (outcome == "whole") {
    EXPECT_EQ(victim_->must("differ data 3"), "0");
  }
  EXPECT_TRUE(parcel.wait(kEnds)) << "the victim has left its copy";
}

INSTANTIATE_TEST_SUITE_P(Over, ParcelEnds, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

// ./dev check --mixed runs the tests of this program with peers of a build without parcels.
TEST(MixedVersions, APeerWithoutParcelsIsNamed) {
  if (otherProcessPeer() == nullptr)
    GTEST_SKIP() << "skipped: no program of a build without parcels";
  Survivor survivor(DataPath{"tcp", "tcp", false}, 2s);
  const auto peer = survivor.start();
  survivor.expectWorks(*peer);
  const auto memory = survivor.memory(Survivor::kData, "target");
  const auto fetch = survivor.agent().fetch(
      survivor.peer(), "p",
      {.place = [](const PartOffer&) -> Result<PartInto> { return PartInto{}; }});
  ASSERT_FALSE(fetch);
  EXPECT_EQ(fetch.error().code, Code::kUnsupported) << fetch.error().text();
  EXPECT_NE(peer->ask(kVictimFetches).find("this agent has no parcels"), std::string::npos);
}

}  // namespace
}  // namespace viaduct::testing
