// The contract: peers connect, die and come back.
#include "contract/backend_contract.h"

namespace viaduct::testing {

TEST_P(BackendContract, APeerThatGoesEndsItsTransfersAndWakesWaiters) {
  const std::uint64_t kBytes = sized(64 << 20);
  const auto here = allocateAtA(kBytes);
  auto there = allocateAtB(kBytes, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  auto transfer = plan(OpKind::kWrite, whole(*here), whole(*there));
  ASSERT_TRUE(transfer);
  const auto epoch = b_at_a_->epoch();
  ASSERT_TRUE(transfer->post());
  b_.reset();
  static_cast<void>(transfer->wait(60s));
  EXPECT_NE(transfer->end().state, TransferState::kRunning);
  const auto over = b_at_a_->over(epoch, 60s);
  EXPECT_TRUE(over) << over.error().text();
  const auto refused = transfer->post();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kPeerLost);
  EXPECT_EQ(refused.error().peer, "b");
}

TEST_P(BackendContract, APeerThatComesBackIsReachedWithoutRestartingTheSurvivor) {
  const auto here = allocateAtA(100'000, {.label = "here"});
  ASSERT_TRUE(here);
  for (std::uint64_t life = 1; life <= 3; ++life) {
    const auto there = allocateAtB(100'000, {.label = "there"});
    ASSERT_TRUE(there);
    waitForPin(*b_at_a_, "there");
    fill(*here, life);
    auto transfer = plan(OpKind::kWrite, whole(*here), whole(*there));
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    const auto done = transfer->wait(60s);
    ASSERT_TRUE(done) << done.error().text();
    EXPECT_TRUE(holds(*there, life));
    const auto epoch = b_at_a_->epoch();
    b_.reset();
    ASSERT_TRUE(b_at_a_->over(epoch, 60s));
    auto again = Agent::open(settings("b"));
    ASSERT_TRUE(again) << again.error().text();
    b_.emplace(*std::move(again));
    auto back = b_->importCard(a_->exportCard());
    ASSERT_TRUE(back);
    const auto ready = b_at_a_->ready(60s);
    ASSERT_TRUE(ready) << ready.error().text();
    EXPECT_GT(b_at_a_->epoch(), epoch);
    ASSERT_TRUE(back->ready(60s));
  }
}

TEST_P(BackendContract, BothMayDialAtOnce) {
  for (int round = 0; round < 5; ++round) {
    std::optional<Agent> c, d;
    for (auto* agent : {&c, &d}) {
      auto opened = Agent::open(settings((agent == &c ? "c" : "d") + std::to_string(round)));
      ASSERT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    auto d_at_c = c->importCard(d->exportCard());
    auto c_at_d = d->importCard(c->exportCard());
    ASSERT_TRUE(d_at_c && c_at_d);
    const auto c_ready = d_at_c->ready(60s), d_ready = c_at_d->ready(60s);
    ASSERT_TRUE(c_ready) << c_ready.error().text();
    ASSERT_TRUE(d_ready) << d_ready.error().text();
    ASSERT_TRUE(d_at_c->note("hello"));
    const auto note = d->waitNote(60s);
    ASSERT_TRUE(note) << note.error().text();
    EXPECT_EQ(d_at_c->epoch(), c_at_d->epoch());
  }
}

}  // namespace viaduct::testing
