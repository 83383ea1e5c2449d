// A peer that knows the secret and obeys no rule meets an agent: each frame type too large, with
// descriptors, at the wrong time, and too often. The agent ends the session or bears it, and a
// bystander's session goes on.
#include "support/lying_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "agent/parcels/parcel_messages.h"
#include "agent/session/frame_rules.h"
#include "base/net/crypto.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using agent::FrameRule, agent::FrameType, agent::kFrameRules;

// No session ends for its silence here: a slow build may keep a liar silent for long.
class LyingPeerTest : public ::testing::TestWithParam<bool> {
 protected:
  LyingPeerTest()
      : agent_(*Agent::open(
            {.name = "agent", .secret = "ours", .detect = 20s, .note_backlog = 256 << 20})),
        bystander_(*Agent::open({.name = "bystander", .secret = "ours", .detect = 20s})),
        to_agent_(*bystander_.importCard(agent_.exportCard())) {
    const Status ready = to_agent_.ready(20s);
    EXPECT_TRUE(ready) << ready.error().text();
  }
  // Each liar has its own name, so that reason() finds the session of this liar.
  std::string nextName() { return "liar-" + std::to_string(++liars_); }
  std::string where() const {
    const auto card = *Card::decode(agent_.exportCard());
    return GetParam() ? "unix:@" + card.unix_name : card.addresses.at(0);
  }
  LyingPeer liar(const std::string& name) {
    auto met = LyingPeer::meet(where(), base::secretFromText("ours"), name);
    EXPECT_TRUE(met) << met.error().text();
    return *std::move(met);
  }
  // Returns the reason why the agent ended the session of that peer.
  std::string reason(const std::string& name) {
    const auto peer = agent_.peer(name);
    return peer ? peer->note("x").error().text() : "unknown";
  }
  void expectBystanderLives() {
    EXPECT_EQ(to_agent_.state(), PeerState::kReady);
    EXPECT_EQ(to_agent_.epoch(), 1U);
    ASSERT_TRUE(to_agent_.note("here"));
    std::optional<std::string> from;
    for (auto note = agent_.waitNote(20s); note && from != "bystander";
         note = agent_.waitNote(20s)) {
      from = note->from;
      if (from == "bystander") break;
    }
    EXPECT_EQ(from, "bystander");
  }

  Agent agent_, bystander_;
  Peer to_agent_;
  int liars_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Over, LyingPeerTest, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "Unix" : "Tcp"; });

TEST(LyingPeerLies, CoverEveryFrameType) {
  for (const FrameRule& rule : kFrameRules)
    EXPECT_NE(std::ranges::find(lies(), rule.type, &Lie::type), lies().end())
        << "add a lie about the frame '" << rule.name << "' to tests/support/lies.cc";
}

TEST(FrameRules, AreThoseOfTheDocumentation) {
  std::stringstream page;
  page << std::ifstream(std::string(kSourceDir) + "/docs/wire.md").rdbuf();
  const auto limit = [](std::uint64_t number) {
    return number == 0 ? std::string("–") : std::to_string(number);
  };
  for (const FrameRule& rule : kFrameRules) {
    const std::string row =
        fmt::format("| {} | {} | {} | {} | {} |", rule.name, rule.most_bytes, rule.most_fds,
                    limit(rule.most_entries), limit(rule.most_times));
    EXPECT_NE(page.str().find(row), std::string::npos) << "docs/wire.md lacks the row: " << row;
  }
}

TEST_P(LyingPeerTest, EveryFrameAboveItsSizeEndsTheSession) {
  for (const FrameRule& rule : kFrameRules) {
    const std::string name = nextName();
    LyingPeer peer = liar(name);
    peer.announce(rule.type, rule.most_bytes + 1);
    EXPECT_TRUE(peer.isExpelled()) << rule.name;
    EXPECT_NE(reason(name).find(std::to_string(rule.most_bytes + 1)), std::string::npos)
        << reason(name);
    EXPECT_NE(reason(name).find("limit of " + std::to_string(rule.most_bytes)), std::string::npos);
  }
  expectBystanderLives();
}

TEST_P(LyingPeerTest, NoFrameBringsMoreDescriptorsThanItMay) {
  if (!GetParam()) GTEST_SKIP() << "skipped: TCP carries no descriptors";
  const std::vector<int> fds(agent::kMaxFrameFds + 1, 0);
  for (const FrameRule& rule : kFrameRules) {
    const std::string name = nextName();
    LyingPeer peer = liar(name);
    peer.send(rule.type, {}, std::span(fds).first(rule.most_fds + 1));
    EXPECT_TRUE(peer.isExpelled()) << rule.name;
  }
  expectBystanderLives();
}

TEST_P(LyingPeerTest, NoFrameComesBeforeItsTime) {
  for (const FrameRule& rule : kFrameRules) {
    if (rule.type == FrameType::kHello || rule.type == FrameType::kResume) continue;
    auto peer = LyingPeer::prove(where(), base::secretFromText("ours"));
    ASSERT_TRUE(peer) << peer.error().text();
    peer->send(rule.type, {});
    EXPECT_TRUE(peer->isExpelled()) << rule.name;
  }
  expectBystanderLives();
}

TEST_P(LyingPeerTest, AFeatureThatTheOtherEndLacksIsRefusedInBothDirections) {
  auto peer = LyingPeer::prove(where(), base::secretFromText("ours"));
  ASSERT_TRUE(peer) << peer.error().text();
  ASSERT_TRUE(peer->introduce("older", [](agent::Hello& hello) {
    hello.features = bitOf(agent::Feature::kBase);
    hello.backends.clear();  // so that no link keeps the peer from being ready
  }));
  peer->sync();
  const auto older = agent_.peer("older");
  ASSERT_TRUE(older && older->ready(20s));
  const auto fetch = agent_.fetch(
      *older, "kv", {.place = [](const PartOffer&) -> Result<PartInto> { return PartInto{}; }});
  ASSERT_FALSE(fetch);
  EXPECT_EQ(fetch.error().code, Code::kUnsupported);
  EXPECT_NE(fetch.error().text().find("has no parcels"), std::string::npos) << fetch.error().text();
  peer->send(FrameType::kParcel,
             agent::encodeParcel(agent::WantMessage{.number = 1, .name = "kv"}));
  EXPECT_TRUE(peer->isExpelled());
  EXPECT_NE(reason("older").find("without that feature"), std::string::npos) << reason("older");
  expectBystanderLives();
}

TEST_P(LyingPeerTest, AHelloWithoutTheBaseIsRefused) {
  auto peer = LyingPeer::prove(where(), base::secretFromText("ours"));
  ASSERT_TRUE(peer) << peer.error().text();
  EXPECT_FALSE(peer->introduce("nobody", [](agent::Hello& hello) { hello.features = 0; }));
  expectBystanderLives();
}

TEST_P(LyingPeerTest, EveryLieEndsTheSessionOrIsBorne) {
  for (const Lie& lie : lies()) {
    const std::string name = nextName();
    LyingPeer peer = liar(name);
    lie.tell(peer);
    if (!lie.breaks) continue;
    EXPECT_TRUE(peer.isExpelled()) << "the liar " << lie.name << ": " << reason(name);
    EXPECT_EQ(reason(name).find("no frame arrived"), std::string::npos)
        << "the liar " << lie.name << " was lost because it was silent";
    expectBystanderLives();
  }
  expectBystanderLives();
}

// Marks that came in time outlive the session that brought them. The marks of all departed peers
// together take a bounded amount of memory.
TEST_P(LyingPeerTest, DepartedPeersLeaveABoundedNumberOfMarks) {
  constexpr int kPeers = 40;  // each leaves 1 MiB
  const auto& marks = *std::ranges::find_if(
      lies(), [](const Lie& lie) { return lie.type == FrameType::kMark && !lie.breaks; });
  for (int i = 0; i < kPeers; ++i) {
    LyingPeer peer = liar(nextName());
    marks.tell(peer);
    peer.send(FrameType::kBye, {});
  }
  const auto known = [&] { return agent_.peers().size(); };
  const auto until = Clock::now() + 20s;
  while (known() > kPeers / 2 && Clock::now() < until) std::this_thread::sleep_for(10ms);
  EXPECT_LE(known(), kPeers / 2);
}

}  // namespace
}  // namespace viaduct::testing
