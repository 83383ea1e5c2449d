// Parcels whose owners are found at a meeting place, which runs in this process.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "meet/groups/server.h"
#include "meet/place.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 4096;
constexpr const char* kSecret = "swordfish";
constexpr auto kSoon = 200ms;  // the place has answered by then, unless the machine is busy

// An agent at the meeting place, with memory for one part.
struct PlacedAgent {
  PlacedAgent(const std::string& where, const std::string& name, const std::string& secret)
      : agent(*Agent::open(
            {.name = name, .secret = secret, .detect = 10min, .deadline = 20s, .meet = where})),
        pin(*agent.allocate(kBytes)) {}
  Selection memory() const {
    return {
        *Blocks::strided({.base = pin.info().address, .stride = 0, .bytes = kBytes, .count = 1}),
        {}};
  }
  Result<PublishedParcel> publish(std::uint64_t version, int value) {
    std::ranges::fill(pin.bytes(), static_cast<std::byte>(value));
    return agent.publish("kv", {.version = version, .ready = {{{}, memory()}}, .at_place = true});
  }
  Status take(const std::string& name = "kv", Deadline until = 20s) {
    auto fetch = agent.fetch(name, {.into = {{{}, memory()}}, .deadline = until});
    if (!fetch) return std::move(fetch).error();
    return fetch->wait(20s);
  }
  bool holds(int value) const {
    return std::ranges::all_of(pin.bytes(),
                               [&](std::byte b) { return b == static_cast<std::byte>(value); });
  }

  Agent agent;
  Pin pin;
};

class ParcelPlace : public ::testing::Test {
 protected:
  ParcelPlace() {
    consumer_.emplace(where(), "consumer", kSecret);
    place_ = std::move(*meet::openMeetingPlace({.where = where(), .token = kSecret}));
  }
  std::string where() const { return server_->addresses().front(); }
  PlacedAgent open(const std::string& name) { return {where(), name, kSecret}; }
  Result<std::string> entry(Deadline until = 20s) {
    return place_->find("parcel/kv", until, meet::StopFlag{false});
  }

  std::unique_ptr<meet::EmbeddedServer> server_ =
      std::move(*meet::EmbeddedServer::start({.token = kSecret}));
  std::optional<PlacedAgent> consumer_;
  std::unique_ptr<meet::MeetingPlace> place_;
};

TEST_F(ParcelPlace, AParcelIsFetchedByItsNameAlone) {
  PlacedAgent owner = open("owner");
  auto parcel = owner.publish(1, 7);
  ASSERT_TRUE(parcel) << parcel.error().text();
  const Status whole = consumer_->take();
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_TRUE(consumer_->holds(7));
  const Status own = owner.take();
  EXPECT_TRUE(own) << own.error().text();
  const auto found = consumer_->agent.findParcel("kv", 20s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->agent, owner.agent.card().agent);
}

TEST_F(ParcelPlace, AFetchWaitsForTheName) {
  auto fetched = std::async(std::launch::async, [this] { return consumer_->take(); });
  PlacedAgent owner = open("owner");
  auto parcel = owner.publish(1, 7);
  const Status whole = fetched.get();
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_TRUE(consumer_->holds(7));
}

TEST_F(ParcelPlace, TheNameGoesWithTheLastHandle) {
  PlacedAgent owner = open("owner");
  {
    auto first = owner.publish(1, 7);
    auto second = owner.publish(2, 8);
    ASSERT_TRUE(second) << second.error().text();
    ASSERT_TRUE(first->close());
    EXPECT_TRUE(entry()) << "version 2 is there";
  }
  EXPECT_EQ(entry(kSoon).error().code, Code::kTimeout);
  const Status none = consumer_->take("kv", 1ms);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kTimeout) << none.error().text();
  auto third = owner.publish(3, 9);
  ASSERT_TRUE(third->withdraw());
  EXPECT_EQ(entry(kSoon).error().code, Code::kTimeout);
}

TEST_F(ParcelPlace, AnEntryOfAnEarlierLifeIsNotBelieved) {
  std::string old;
  {
    PlacedAgent owner = open("owner");
    auto parcel = owner.publish(1, 7);
    old = *entry();
  }
  PlacedAgent owner = open("owner");  // a new agent with the same name
  auto left_behind = place_->publish("parcel/kv", old, 20s);
  ASSERT_TRUE(left_behind) << left_behind.error().text();
  const Status stale = consumer_->take("kv", 1s);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, Code::kTimeout) << stale.error().text();
  EXPECT_NE(stale.error().text().find("owner"), std::string::npos) << stale.error().text();
  EXPECT_EQ(owner.publish(1, 9).error().code, Code::kBusy) << "the name is taken";
  auto fetched = std::async(std::launch::async, [this] { return consumer_->take(); });
  left_behind->reset();
  auto parcel = owner.publish(2, 9);
  ASSERT_TRUE(parcel) << parcel.error().text();
  const Status whole = fetched.get();
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_TRUE(consumer_->holds(9));
}

TEST_F(ParcelPlace, AnEntryWithoutTheSecretOrOfAnotherParcelIsRefused) {
  PlacedAgent owner = open("owner");
  auto parcel = owner.publish(1, 7);
  const std::string copied = *entry();
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"copied", copied}, {"none", "x"}}) {
    const auto forged = place_->publish("parcel/" + name, value, 20s);
    ASSERT_TRUE(forged) << forged.error().text();
    const Status refused = consumer_->take(name);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kDenied) << refused.error().text();
  }
}

TEST_F(ParcelPlace, ADrainTakesTheNameAndUndrainBringsItBack) {
  PlacedAgent owner = open("owner");
  auto parcel = owner.publish(1, 7);
  ASSERT_TRUE(consumer_->take());
  // A fetch that waits for its second rank keeps the drain from ending.
  auto waiting = consumer_->agent.fetch(
      "kv", {.group = {.name = "pair", .size = 2}, .into = {{{}, consumer_->memory()}}});
  ASSERT_TRUE(waiting && waiting->waitPart({}, 20s));
  auto drained = std::async(std::launch::async, [&] { return owner.agent.drain(20s); });
  while (!owner.agent.drainState().draining) std::this_thread::yield();
  while (entry(kSoon)) {
  }
  const Status back = owner.agent.undrain();
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(drained.get().error().code, Code::kCancelled);
  EXPECT_TRUE(entry());
}

TEST_F(ParcelPlace, OnlyAnOwnerWithAPlaceAnnouncesAParcel) {
  PlacedAgent owner = open("owner");
  const auto peer = consumer_->agent.find("owner", 20s);
  ASSERT_TRUE(peer && peer->ready(20s));
  const auto other = consumer_->agent.publish(
      "kv", {.owner = *peer, .ready = {{{}, consumer_->memory()}}, .at_place = true});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kInvalid) << other.error().text();
  Agent nowhere = *Agent::open({.name = "nowhere"});
  const auto none = nowhere.publish("kv", {.parts = {{}}, .at_place = true});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("VIADUCT_MEET"), std::string::npos) << none.error().text();
  EXPECT_FALSE(nowhere.findParcel("kv", 20s));
}

}  // namespace
}  // namespace viaduct
