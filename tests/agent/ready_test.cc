// Peer::ready() while the peer comes and goes.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/agent_of_a_clock.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;
using agent::AgentOfAClock;

// If a session becomes ready but ends before the call returns, the call waits for the next session.
TEST(Ready, WaitsUntilThePeerIsReadyOrTheDeadline) {
  const auto opened = [](const char* name) {
    return Agent::open({.name = name, .backends = {"local"}});
  };
  auto a = opened("a");
  ASSERT_TRUE(a) << a.error().text();
  std::optional<Agent> b(*opened("b"));
  const auto peer = a->importCard(b->exportCard());
  ASSERT_TRUE(peer && peer->ready(10s));
  const std::jthread waits([&](const std::stop_token& over) {
    while (!over.stop_requested()) {
      const Status ready = peer->ready(30s);
      ASSERT_TRUE(ready) << ready.error().text();
    }
  });
  for (int life = 0; life < 200; ++life) {
    const auto epoch = peer->epoch();
    b.emplace(*opened("b"));
    ASSERT_TRUE(b->importCard(a->exportCard()));
    ASSERT_TRUE(peer->over(epoch, 10s) && peer->ready(30s));
  }
}

TEST(Ready, ConnectingTwiceGivesOnePeer) {
  const auto opened = [](const char* name) {
    return Agent::open(
        {.name = name, .listen = {"127.0.0.1:0"}, .secret = "ours", .backends = {"tcp"}});
  };
  auto a = opened("a"), b = opened("b");
  ASSERT_TRUE(a && b);
  for (int i = 0; i < 5; ++i) {
    const auto peer = a->connect(b->card().addresses.at(0));
    ASSERT_TRUE(peer && peer->ready(10s));
    EXPECT_EQ(peer->name(), "b");
    EXPECT_EQ(peer->epoch(), 1U);
  }
  EXPECT_EQ(a->peers().size(), 1U);
}

// The handle of the second connect() is dropped at once. Until the address has answered, only the
// connection attempt refers to its peer.
TEST(Ready, AHandleMayBeDroppedBeforeItsPeerTurnsOutToBeKnown) {
  const auto opened = [](const char* name) {
    return Agent::open(
        {.name = name, .listen = {"127.0.0.1:0"}, .secret = "ours", .backends = {"tcp"}});
  };
  auto a = opened("a"), b = opened("b");
  ASSERT_TRUE(a && b);
  const std::string address = b->card().addresses.at(0);
  const auto peer = a->connect(address);
  ASSERT_TRUE(peer && peer->ready(10s));
  ASSERT_TRUE(a->connect(address)) << "its handle is dropped here";
  for (const Deadline until = 10s; a->peers().size() > 1;) {
    ASSERT_FALSE(until.passed());
    a->poll();
  }
  EXPECT_EQ(peer->state(), PeerState::kReady);
  EXPECT_EQ(peer->epoch(), 1U);
}

// Two agents of this process and of one clock. The first links of "poor"'s fake backend lack
// descriptors.
class Shortage : public ::testing::TestWithParam<bool> {
 protected:
  void meet(std::vector<std::string> backends, int exhausted) {
    poor_.emplace(
        *AgentOfAClock::open({.name = "poor",
                              .secret = "ours",
                              .backends = backends,
                              .others = {{"VIADUCT_FAKE", "exhaust=" + std::to_string(exhausted)}}},
                             clock_));
    rich_.emplace(
        *AgentOfAClock::open({.name = "rich", .secret = "ours", .backends = backends}, clock_));
    const bool poor_dials = GetParam();
    ASSERT_TRUE(poor_dials ? poor_->importCard(rich_->exportCard())
                           : rich_->importCard(poor_->exportCard()));
  }
  Peer poor() { return *rich_->peer("poor"); }
  void pass() {
    clock_.advance(10ms);
    poor_->poll();
    rich_->poll();
  }
  // Moves the clock until `so` is true at "poor". An agent that was dialed may not know its peer at
  // first.
  template <class F>
  bool passUntil(F so) {
    for (const Deadline limit = 30s; !limit.passed(); pass())
      if (const auto rich = poor_->peer("rich"); rich && so(*rich)) return true;
    return false;
  }
  bool becomesReady() {
    return passUntil([](const Peer& rich) { return rich.state() == PeerState::kReady; });
  }
  bool isUsable(std::string_view backend) {
    for (const PeerWay& way : poor_->peer("rich")->ways())
      if (way.backend == backend) return way.usable;
    return false;
  }
  base::MovableClock clock_;
  std::optional<Agent> poor_, rich_;
};

TEST_P(Shortage, BackendsAreOpenedByALaterSession) {
  meet({"fake", "tcp"}, 3);
  ASSERT_TRUE(becomesReady());
  EXPECT_TRUE(isUsable("fake") && isUsable("tcp"));
  ASSERT_TRUE(poor().ready(30s));
  EXPECT_GE(poor().epoch(), 4U);
}

TEST_P(Shortage, APeerIsReadyWithoutABackendThatLacksDescriptorsForLong) {
  meet({"fake", "tcp"}, 1'000'000);
  ASSERT_TRUE(becomesReady());
  EXPECT_FALSE(isUsable("fake"));
  EXPECT_TRUE(isUsable("tcp"));
  ASSERT_TRUE(poor().ready(30s));
}

// The agents open eight sessions in the first 1.3 s, and later at most one a second.
TEST_P(Shortage, APeerWithoutAnyBackendIsTriedWithAGrowingBackoff) {
  const auto began = clock_.now();
  meet({"fake"}, 1'000'000);
  ASSERT_TRUE(passUntil([](const Peer& rich) { return rich.epoch() >= 3; }));
  for (int i = 0; i < 2000; ++i) pass();
  const Status never = poor_->peer("rich")->ready(0s);
  ASSERT_FALSE(never);
  EXPECT_NE(never.error().text().find("no descriptors"), std::string::npos) << never.error().text();
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(clock_.now() - began);
  EXPECT_LE(poor().epoch(), 9U + static_cast<std::uint64_t>(seconds.count()));
  EXPECT_GE(poor().epoch(), 9U) << "but it is tried again and again";
}

INSTANTIATE_TEST_SUITE_P(EachEnd, Shortage, ::testing::Bool(), [](const auto& dials) {
  return dials.param ? std::string("Dials") : std::string("IsDialed");
});

// A long-running agent meets thousands of peers with different names, so it forgets departed ones.
TEST(Ready, DepartedPeersBeyondALimitAreForgotten) {
  constexpr std::size_t kCome = 300, kKept = 256;
  const auto opened = [](std::string name) {
    return Agent::open({.name = std::move(name), .backends = {"local"}, .detect = 200ms});
  };
  auto a = opened("a");
  ASSERT_TRUE(a) << a.error().text();
  std::optional<Peer> held;
  for (std::size_t i = 0; i < kCome; ++i) {
    auto b = opened("b" + std::to_string(i));
    ASSERT_TRUE(b) << b.error().text();
    const auto to = b->importCard(a->exportCard());
    ASSERT_TRUE(to && to->ready(10s));
    if (i == 0) held = *a->peer("b0");
  }
  const auto until = Clock::now() + 10s;
  while (a->peers().size() > kKept + 1 && Clock::now() < until) a->poll();
  EXPECT_EQ(a->peers().size(), kKept + 1);
  EXPECT_TRUE(a->peer("b0")) << "somebody holds it";
  EXPECT_FALSE(a->peer("b1"));
  EXPECT_TRUE(a->peer("b299"));
  EXPECT_EQ(held->state(), PeerState::kGone);
}

// Another agent has taken the peer's address, without its secret. That ends neither the wait nor
// the attempts to connect.
TEST(Ready, APeerIsReadyAgainAfterAnotherAgentHadItsAddress) {
  const auto opened = [](const char* name, std::string at, std::string secret) {
    return Agent::open({.name = name,
                        .listen = {std::move(at)},
                        .secret = std::move(secret),
                        .backends = {"tcp"}});
  };
  auto a = opened("a", "127.0.0.1:0", "ours");
  auto b = opened("b", "127.7.0.1:0", "ours");  // a loopback address whose ports no other test uses
  ASSERT_TRUE(a && b);
  const auto peer = a->importCard(b->exportCard());
  ASSERT_TRUE(peer && peer->ready(10s));
  ASSERT_TRUE(a->importCard(b->exportCard())) << "again, while they are together";
  const std::string address = b->card().addresses.at(0);
  b = Error{};
  {
    const auto stranger = opened("stranger", address, "theirs");
    ASSERT_TRUE(stranger) << stranger.error().text();
    const auto denied = [&] {
      const Status ready = peer->ready(10ms);
      return !ready && ready.error().code == Code::kDenied;
    };
    for (const Deadline until = 30s; !denied();) ASSERT_FALSE(until.passed());
  }
  b = opened("b", address, "ours");
  ASSERT_TRUE(b) << b.error().text();
  const Status ready = peer->ready(30s);
  EXPECT_TRUE(ready) << ready.error().text();
}

}  // namespace
}  // namespace viaduct
