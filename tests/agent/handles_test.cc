// Handles outlive what they name without harm.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <optional>

#include "support/free_port.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

TEST(Handles, ThatOutliveTheirAgentAreDeadButHarmless) {
  std::optional<Agent> a, b;
  for (auto* agent : {&a, &b}) {
    auto opened = Agent::open();
    ASSERT_TRUE(opened) << opened.error().text();
    agent->emplace(*std::move(opened));
  }
  auto here = a->allocate(4096);
  auto there = b->allocate(4096, {.label = "there"});
  auto peer = a->importCard(b->exportCard());
  ASSERT_TRUE(here && there && peer && peer->ready(5s) && peer->pin("there", 5s));
  auto transfer =
      a->plan(OpKind::kWrite, *peer, {.blocks = *Blocks::strided(here->info().address, 1, 4096, 1)},
              {.blocks = *Blocks::strided(there->info().address, 1, 4096, 1)});
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
