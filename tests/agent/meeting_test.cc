// Agents that connect to each other, and agents that may not.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <string>

#include "support/free_port.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

Agent open(std::string name, std::string secret = {}, std::string listen = {}) {
  Settings settings;
  settings.name = std::move(name);
  settings.secret = std::move(secret);
  if (!listen.empty()) settings.listen = {std::move(listen)};
  auto agent = Agent::open(settings);
  EXPECT_TRUE(agent) << agent.error().text();
  return *std::move(agent);
}

std::string addressOf(const Agent& agent) { return agent.card().addresses.front(); }

// The reason why a peer is not ready, once an answer has come whose text contains `word`.
std::string whyNotReady(const Peer& peer, const std::string& word) {
  std::string why;
  for (const Deadline until = 30s; !until.passed() && why.find(word) == std::string::npos;) {
    const auto ready = peer.ready(100ms);
    EXPECT_FALSE(ready);
    why = ready ? word : ready.error().text();
  }
  return why;
}

TEST(Meeting, ByAddressWithTheGroupsSecret) {
  Agent a = open("a", "swordfish"), b = open("b", "swordfish");
  const auto peer = a.connect(addressOf(b));
  ASSERT_TRUE(peer) << peer.error().text();
  const auto ready = peer->ready(5s);
  ASSERT_TRUE(ready) << ready.error().text();
  EXPECT_EQ(peer->name(), "b");
  ASSERT_TRUE(peer->note("hello"));
  const auto note = b.waitNote(5s);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->from, "a");
}

TEST(Meeting, ByAddressOnThisHostTakesTheUnixSocket) {
  Agent a = open("a", "swordfish"), b = open("b", "swordfish");
  const auto pin = b.allocate(4096, {.label = "there"});
  const auto peer = a.connect(addressOf(b));
  ASSERT_TRUE(peer && pin);
  ASSERT_TRUE(peer->ready(5s));
  // Only the Unix socket proves that both agents are on one host.
  bool local = false;
  for (const PeerWay& way : peer->ways()) local = local || (way.backend == "local" && way.usable);
  EXPECT_TRUE(local);
}

TEST(Meeting, TheAddressOfAKnownPeerGivesTheSamePeer) {
  Agent a = open("a", "swordfish"), b = open("b", "swordfish");
  const auto first = a.importCard(b.exportCard());
  ASSERT_TRUE(first && first->ready(5s));
  const auto second = a.connect(addressOf(b));
  ASSERT_TRUE(second);
  const auto ready = second->ready(5s);
  ASSERT_TRUE(ready) << ready.error().text();
  EXPECT_EQ(second->name(), "b");
  EXPECT_EQ(second->epoch(), first->epoch());
  ASSERT_TRUE(second->note("once"));
  EXPECT_TRUE(b.waitNote(5s));
}

TEST(Meeting, AWrongSecretIsRefusedAtOnce) {
  Agent a = open("a", "swordfish"), b = open("b", "sturgeon");
  const auto peer = a.connect(addressOf(b));
  ASSERT_TRUE(peer);
  const auto start = Clock::now();
  const auto ready = peer->ready(30s);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Code::kDenied) << ready.error().text();
  EXPECT_FALSE(ready.error().remedy.empty());
  EXPECT_LT(Clock::now() - start, 10s);
  EXPECT_TRUE(b.peers().empty());
}

TEST(Meeting, ACardWithAnotherSecretIsRefused) {
  Agent a = open("a"), b = open("b");
  Card forged = b.card();
  forged.secret[7] ^= 1U;
  const auto peer = a.connect(forged);
  ASSERT_TRUE(peer);
  const auto ready = peer->ready(30s);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Code::kDenied) << ready.error().text();
}

TEST(Meeting, InsecureAgentsNeedNoSecret) {
  Settings settings;
  settings.insecure = true;
  settings.name = "a";
  auto a = Agent::open(settings);
  settings.name = "b";
  auto b = Agent::open(settings);
  ASSERT_TRUE(a && b);
  const auto peer = a->connect(addressOf(*b));
  ASSERT_TRUE(peer);
  const auto ready = peer->ready(5s);
  EXPECT_TRUE(ready) << ready.error().text();
}

TEST(Meeting, TheErrorNamesAnAddressWithoutAListener) {
  Agent a = open("a", "swordfish");
  const std::string address = testing::freeAddress();
  const auto peer = a.connect(address);
  ASSERT_TRUE(peer);
  const auto ready = peer->ready(300ms);
  ASSERT_FALSE(ready);
  EXPECT_NE(ready.error().text().find(address), std::string::npos) << ready.error().text();
  EXPECT_FALSE(ready.error().cause.empty() && ready.error().remedy.empty());
}

TEST(Meeting, ALateListenerIsFound) {
  Agent a = open("a", "swordfish");
  const std::string address = testing::freeAddress();
  const auto peer = a.connect(address);
  ASSERT_TRUE(peer);
  EXPECT_FALSE(peer->ready(50ms));
  const Agent late = open("b", "swordfish", address);
  const auto ready = peer->ready(10s);
  EXPECT_TRUE(ready) << ready.error().text();
}

TEST(Meeting, TheSecondOfTwoAgentsWithOneNameIsRefused) {
  Agent center = open("center");
  Agent first = open("twin"), second = open("twin");
  const auto one = first.importCard(center.exportCard());
  ASSERT_TRUE(one && one->ready(5s));
  const auto other = second.importCard(center.exportCard());
  ASSERT_TRUE(other);
  const std::string why = whyNotReady(*other, "twin");
  EXPECT_NE(why.find("twin"), std::string::npos) << why;
  // The first peer is not disturbed.
  EXPECT_EQ(one->state(), PeerState::kReady);
  ASSERT_TRUE(one->note("still here"));
  EXPECT_TRUE(center.waitNote(5s));
}

TEST(Meeting, AnotherAgentAtTheAddressIsNotTakenForThePeer) {
  Agent a = open("a", "swordfish");
  const std::string address = testing::freeAddress();
  Card card = open("b", "swordfish", address).card();
  card.unix_name.clear();
  const Agent impostor = open("impostor", "swordfish", address);
  const auto peer = a.connect(card);
  ASSERT_TRUE(peer);
  const std::string why = whyNotReady(*peer, "impostor");
  EXPECT_NE(why.find("impostor"), std::string::npos) << why;
}

TEST(Meeting, AForgottenPeerIsGoneAndCanBeMetAgain) {
  Agent a = open("a"), b = open("b");
  const auto peer = a.importCard(b.exportCard());
  ASSERT_TRUE(peer && peer->ready(5s));
  const auto seen_by_b = b.peer("a");
  ASSERT_TRUE(seen_by_b);
  const auto epoch = seen_by_b->epoch();
  peer->forget();
  EXPECT_EQ(peer->state(), PeerState::kGone);
  ASSERT_TRUE(seen_by_b->over(epoch, 5s));
  EXPECT_EQ(seen_by_b->state(), PeerState::kGone);
  const auto again = a.importCard(b.exportCard());
  ASSERT_TRUE(again);
  const auto ready = again->ready(5s);
  EXPECT_TRUE(ready) << ready.error().text();
}

// A thread that posts small copies without a pause has to leave time for heartbeats.
TEST(Meeting, APeerThatPostsWithoutAPauseIsNotLost) {
  Settings settings;
  settings.detect = 4s;
  settings.name = "a";
  auto a = Agent::open(settings);
  settings.name = "b";
  auto b = Agent::open(settings);
  ASSERT_TRUE(a && b);
  const auto here = a->allocate(256 << 10);
  const auto there = b->allocate(256 << 10, {.label = "there"});
  const auto peer = a->importCard(b->exportCard());
  ASSERT_TRUE(here && there && peer && peer->ready(5s) && peer->waitPin("there", 5s));
  auto transfer = a->plan(
      OpKind::kWrite, *peer,
      {.blocks = *Blocks::strided({.base = here->info().address, .bytes = 256 << 10, .count = 1})},
      {.blocks =
           *Blocks::strided({.base = there->info().address, .bytes = 256 << 10, .count = 1})});
  ASSERT_TRUE(transfer) << transfer.error().text();
  const auto epoch = peer->epoch();
  for (const auto until = Clock::now() + 5s; Clock::now() < until;) {
    const auto posted = transfer->post();
    ASSERT_TRUE(posted) << posted.error().text();
    ASSERT_TRUE(transfer->wait());
  }
  EXPECT_EQ(peer->epoch(), epoch);
  EXPECT_EQ(peer->state(), PeerState::kReady);
}

}  // namespace
}  // namespace viaduct
