// Agents that find each other by name, at a meeting place that runs in this process.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <future>
#include <string>

#include "base/fields.h"
#include "base/net/crypto.h"
#include "meet/groups/server.h"
#include "meet/place.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

class Find : public ::testing::Test {
 protected:
  void serve(const std::string& token) {
    server_ = std::move(*meet::EmbeddedServer::start({.token = token}));
  }
  Settings settings(const std::string& name, const std::string& secret) const {
    Settings settings;
    settings.name = name;
    settings.secret = secret;
    settings.meet = server_->addresses().front();
    settings.deadline = 20s;
    return settings;
  }
  Agent open(const std::string& name, const std::string& secret = "swordfish") const {
    auto agent = Agent::open(settings(name, secret));
    EXPECT_TRUE(agent) << agent.error().text();
    return *std::move(agent);
  }

  std::unique_ptr<meet::EmbeddedServer> server_;
};

void expectReaches(Agent& from, Agent& to) {
  const auto peer = from.find(to.name(), 20s);
  ASSERT_TRUE(peer) << peer.error().text();
  const Status ready = peer->ready(20s);
  ASSERT_TRUE(ready) << ready.error().text();
  EXPECT_EQ(peer->name(), to.name());
  ASSERT_TRUE(peer->note("hello"));
  EXPECT_TRUE(to.waitNote(20s));
}

TEST_F(Find, ByNameWithTheGroupsSecret) {
  serve("swordfish");
  Agent prefill = open("prefill-0"), decode = open("decode-0");
  expectReaches(prefill, decode);
  expectReaches(decode, decode);
}

TEST_F(Find, WithoutAGroupSecretEachCardHasItsOwn) {
  serve("");
  Agent prefill = open("prefill-0", ""), decode = open("decode-0", "");
  expectReaches(prefill, decode);
}

TEST_F(Find, WaitsForANameThatIsPublishedLater) {
  serve("swordfish");
  Agent prefill = open("prefill-0");
  auto found = std::async(std::launch::async, [&prefill] { return prefill.find("decode-0", 20s); });
  const Agent decode = open("decode-0");
  const auto peer = found.get();
  ASSERT_TRUE(peer) << peer.error().text();
  EXPECT_TRUE(peer->ready(20s));
}

TEST_F(Find, AClosedAgentIsNotFoundButItsSuccessorIs) {
  serve("swordfish");
  Agent prefill = open("prefill-0");
  {
    Agent decode = open("decode-0");
    expectReaches(prefill, decode);
  }
  const auto gone = prefill.find("decode-0", 50ms);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kTimeout) << gone.error().text();
  Agent again = open("decode-0");
  expectReaches(prefill, again);
}

TEST_F(Find, AMemberOfAGroupWithASecretPublishesNoSecret) {
  serve("swordfish");
  const Agent decode = open("decode-0");
  const auto place = std::move(
      *meet::openMeetingPlace({.where = server_->addresses().front(), .token = "swordfish"}));
  const auto blob = place->find("decode-0", 20s, meet::StopFlag{false});
  ASSERT_TRUE(blob);
  const auto secret = decode.card().secret;
  EXPECT_EQ(blob->find(std::string(secret.begin(), secret.end())), std::string::npos);
  EXPECT_NE(secret, base::Key{});
}

// Another program copies the entry of an agent to another name, or writes one of its own.
TEST_F(Find, AnEntryOfAnotherNameOrWithoutTheSecretIsRefused) {
  serve("swordfish");
  Agent prefill = open("prefill-0"), decode = open("decode-0");
  const auto place = std::move(
      *meet::openMeetingPlace({.where = server_->addresses().front(), .token = "swordfish"}));
  const auto blob = place->find("decode-0", 20s, meet::StopFlag{false});
  ASSERT_TRUE(blob);
  Card renamed = decode.card();
  renamed.name = "renamed";
  const auto card = renamed.encode();
  const std::string forged =
      base::packed(base::Key{}, std::string_view(base::textOf(std::span(card))));
  for (const auto& [name, entry] :
       {std::pair<std::string, std::string>{"copied", *blob}, {"renamed", forged}, {"none", "x"}}) {
    const auto published = place->publish(name, entry, 20s);
    ASSERT_TRUE(published) << published.error().text();
    const auto found = prefill.find(name, 20s);
    ASSERT_FALSE(found) << name << " was taken for " << found->name();
    EXPECT_EQ(found.error().code, Code::kDenied) << found.error().text();
    EXPECT_FALSE(prefill.peer(name)) << name;
  }
  // The agent that answers has another name than the Card.
  renamed.secret = decode.card().secret;
  const auto peer = prefill.connect(renamed);
  ASSERT_TRUE(peer) << peer.error().text();
  std::string why;
  const auto until = Clock::now() + 20s;
  while (why.find("is called decode-0, not renamed") == std::string::npos) {
    ASSERT_LT(Clock::now(), until) << why;
    const Status ready = peer->ready(10ms);
    ASSERT_FALSE(ready);
    why = ready.error().text();
  }
}

TEST_F(Find, ASecondAgentOfTheSameNameIsRefused) {
  serve("swordfish");
  const Agent first = open("decode-0");
  const auto second = Agent::open(settings("decode-0", "swordfish"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kBusy) << second.error().text();
}

TEST_F(Find, AWrongSecretIsRefusedAtOnce) {
  serve("swordfish");
  const auto agent = Agent::open(settings("decode-0", "guessed"));
  ASSERT_FALSE(agent);
  EXPECT_EQ(agent.error().code, Code::kDenied) << agent.error().text();
}

TEST_F(Find, WithoutAMeetingPlaceTheErrorNamesTheSetting) {
  auto agent = Agent::open({});
  ASSERT_TRUE(agent);
  const auto peer = agent->find("decode-0", 1s);
  ASSERT_FALSE(peer);
  EXPECT_NE(peer.error().text().find("VIADUCT_MEET"), std::string::npos) << peer.error().text();
}

TEST_F(Find, AMalformedAddressIsRefusedBeforeAnythingElse) {
  Settings settings;
  settings.meet = "meet.example;7000";
  const auto agent = Agent::open(settings);
  ASSERT_FALSE(agent);
  EXPECT_EQ(agent.error().code, Code::kInvalid) << agent.error().text();
}

}  // namespace
}  // namespace viaduct
