// Handles may outlive the objects that they name.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "support/free_port.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

TEST(Handles, ThatOutliveTheirAgentAreDeadButHarmless) {
  std::optional<Agent> a, b;
  for (auto* agent : {&a, &b}) {
    auto opened = Agent::open({});
    ASSERT_TRUE(opened) << opened.error().text();
    agent->emplace(*std::move(opened));
  }
  auto here = a->allocate(4096);
  auto there = b->allocate(4096, {.label = "there"});
  auto peer = a->importCard(b->exportCard());
  ASSERT_TRUE(here && there && peer && peer->ready(5s) && peer->waitPin("there", 5s));
  auto transfer = a->plan(
      OpKind::kWrite, *peer,
      {.blocks = *Blocks::strided({.base = here->info().address, .bytes = 4096, .count = 1})},
      {.blocks = *Blocks::strided({.base = there->info().address, .bytes = 4096, .count = 1})});
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  ASSERT_TRUE(transfer->wait(5s));
  a.reset();
  EXPECT_FALSE(transfer->post());
  EXPECT_EQ(transfer->poll(), TransferState::kDone);
  EXPECT_EQ(transfer->path().shares.size(), 1U);
  EXPECT_EQ(peer->state(), PeerState::kGone);
  EXPECT_FALSE(peer->note("too late"));
  EXPECT_FALSE(peer->ready(0ms));
  EXPECT_TRUE(here->release());
  EXPECT_EQ(here->size(), 4096U);
}

// An agent, its peer, and a transfer between them that never ends.
struct Endless {
  explicit Endless(TransferOptions options = {}) {
    for (auto* agent : {&a, &b}) {
      auto opened = Agent::open({.backends = {"fake"}, .faults = "stop", .faults_allowed = true});
      EXPECT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    here.emplace(*a->allocate(4096));
    there.emplace(*b->allocate(4096, {.label = "there"}));
    auto peer = a->importCard(b->exportCard());
    EXPECT_TRUE(peer && peer->ready(5s) && peer->waitPin("there", 5s));
    auto planned = a->plan(
        OpKind::kWrite, *peer,
        {.blocks = *Blocks::strided({.base = here->info().address, .bytes = 4096, .count = 1})},
        {.blocks = *Blocks::strided({.base = there->info().address, .bytes = 4096, .count = 1})},
        std::move(options));
    EXPECT_TRUE(planned) << planned.error().text();
    transfer.emplace(*std::move(planned));
    EXPECT_TRUE(transfer->post());
  }
  std::optional<Agent> a, b;
  std::optional<Pin> here, there;
  std::optional<Transfer> transfer;
};

TEST(Handles, AnAgentThatClosesEndsTheWaitsForItsTransfersAtOnce) {
  for (int round = 0; round < 5; ++round) {
    Endless endless;
    std::optional<Status> ended;
    std::thread waits([&] { ended = endless.transfer->wait(30s); });
    std::thread polls([&] {
      while (endless.transfer->poll() == TransferState::kRunning) std::this_thread::yield();
    });
    EXPECT_FALSE(endless.transfer->wait(5ms * round));
    endless.a.reset();
    const auto closed = Clock::now();
    waits.join();
    polls.join();
    EXPECT_LT(Clock::now() - closed, 250ms) << "not by the next heartbeat";
    ASSERT_TRUE(ended);
    ASSERT_FALSE(*ended);
    EXPECT_EQ(ended->error().code, Code::kPeerLost) << ended->error().text();
  }
}

TEST(Handles, AnAgentThatClosesEndsTheWaitsForItsPeers) {
  std::optional<Agent> agent(*Agent::open({}));
  const auto nobody = agent->connect(testing::freeAddress());
  ASSERT_TRUE(nobody) << nobody.error().text();
  std::array<std::optional<Status>, 3> ended;
  std::thread ready([&] { ended[0] = nobody->ready(10s); });
  std::thread over([&] { ended[1] = nobody->over(7, 10s); });
  std::thread pin([&] {
    const auto found = nobody->waitPin("there", 10s);
    ended[2] = found ? Status(Ok{}) : Status(found.error());
  });
  EXPECT_FALSE(nobody->ready(20ms));
  agent.reset();
  for (std::thread* one : {&ready, &over, &pin}) one->join();
  for (const auto& one : ended) {
    ASSERT_TRUE(one && !*one);
    EXPECT_EQ(one->error().code, Code::kInvalid) << one->error().text();
  }
}

TEST(Handles, APinIsReleasedAlthoughACallbackPostsAgain) {
  const auto until = Clock::now() + 5s;
  std::atomic<Transfer*> again = nullptr;
  std::atomic<int> posted = 1;
  Endless one({.on_end = [&](const TransferEnd&) {
    if (Clock::now() < until && again.load()->post()) ++posted;
  }});
  again = &*one.transfer;
  EXPECT_TRUE(one.here->release());
  EXPECT_LT(Clock::now(), until);
  EXPECT_EQ(posted, 1) << "what is being released is not there for posts";
}

TEST(Handles, CallbacksRunForTransfersThatAClosingAgentEnds) {
  const auto told = std::make_shared<int>(0);
  Endless endless({.on_end = [told](const TransferEnd& end) {
    *told += end.state == TransferState::kFailed ? 1 : 0;
  }});
  endless.a.reset();
  EXPECT_EQ(*told, 1);
  endless.transfer.reset();
  EXPECT_EQ(told.use_count(), 1) << "somebody keeps the transfer, and with it the agent";
}

TEST(Handles, AnAgentThatIsAssignedOverClosesTheOldOne) {
  Settings settings;
  settings.name = "first";
  settings.listen = {testing::freeAddress()};
  auto first = Agent::open(settings);
  settings.name = "second";
  settings.listen = Settings{}.listen;
  auto second = Agent::open(settings);
  ASSERT_TRUE(first && second);
  const auto address = first->card().addresses.front();
  *first = *std::move(second);
  EXPECT_EQ(first->name(), "second");
  settings.name = "third";
  settings.listen = {address};
  const auto third = Agent::open(settings);
  EXPECT_TRUE(third) << third.error().text();
}

}  // namespace
}  // namespace viaduct
