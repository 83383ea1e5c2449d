// The contract under VIADUCT_FAULTS, over every backend: each fault takes effect, and shows in the
// path and the statistics. All faults but `corrupt` keep every promise of a transfer.
#include <algorithm>
#include <functional>
#include <string>

#include "base/movable_clock.h"
#include "contract/backend_contract.h"

namespace viaduct::testing {
namespace {

constexpr std::uint64_t kFaultBytes = 200'000;

}  // namespace

class FaultsContract : public BackendContract {
 protected:
  // Opens both agents again with these faults, and memory at both ends.
  void openWith(const std::string& faults) {
    here_.reset();
    there_.reset();
    inject(faults);
    base_.deadline = 8h;
    open();
    auto here = allocateAtA(kFaultBytes, {.label = "here"});
    auto there = allocateAtB(kFaultBytes, {.label = "there"});
    ASSERT_TRUE(here && there);
    here_.emplace(*std::move(here));
    there_.emplace(*std::move(there));
    waitForPin(*b_at_a_, "there");
  }
  Result<Transfer> planned(OpKind kind) { return plan(kind, whole(*here_), whole(*there_)); }
  const Pin& from(OpKind kind) const { return kind == OpKind::kWrite ? *here_ : *there_; }
  const Pin& into(OpKind kind) const { return kind == OpKind::kWrite ? *there_ : *here_; }

  // Moves the clock in small steps until the condition holds.
  void passTimeUntil(const std::function<bool()>& over) {
    const auto until = Clock::now() + 60s;
    while (!over() && Clock::now() < until) {
      clock_.advance(10ms);
      a_->poll();
      b_->poll();
    }
    ASSERT_TRUE(over());
  }
  // The number of faults that both agents have injected. With memory of GPUs, both agents post
  // stages.
  std::uint64_t injected(FaultKind kind) const {
    std::uint64_t out = 0;
    for (const auto* agent : {&a_, &b_})
      out += agent->value().statistics().faults.value().at(static_cast<std::size_t>(kind));
    return out;
  }
  bool isMarked(const Path& path) {
    const auto shares = carried(path);
    return std::ranges::all_of(
        shares, [](const PathShare& share) { return share.way.ends_with(kFaultsMark); });
  }

  std::optional<Pin> here_, there_;
};

TEST_P(FaultsContract, ADelayedOpEndsLaterAndThePathSaysSo) {
  openWith("delay=2s");
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    fill(from(kind), 1);
    auto transfer = planned(kind);
    ASSERT_TRUE(transfer) << transfer.error().text();
    const auto posted = Clock::now();
    ASSERT_TRUE(transfer->post());
    // On a busy machine a poll may take long, because it lets others run.
    for (int i = 0; i < 100 && Clock::now() - posted < 1s; ++i)
      EXPECT_TRUE(transfer->poll() == TransferState::kRunning || Clock::now() - posted >= 2s);
    passTimeUntil([&] { return transfer->state() != TransferState::kRunning; });
    const auto done = transfer->wait(60s);
    ASSERT_TRUE(done) << done.error().text();
    comeBehindTheAgents();
    EXPECT_TRUE(holds(into(kind), 1));
    EXPECT_TRUE(isMarked(transfer->path())) << transfer->path().text();
    EXPECT_NE(transfer->path().text().find("+faults"), std::string::npos);
  }
  EXPECT_GE(injected(FaultKind::kDelay), 2U);
  EXPECT_EQ(injected(FaultKind::kStop), 0U);
}

TEST_P(FaultsContract, AStoppedOpEndsAtTheDeadlineAndLeavesTheMemoryAlone) {
  openWith("stop");
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
    for (const bool by_cancel : {false, true}) {
      fill(into(kind), 2);
      auto transfer = planned(kind);
      ASSERT_TRUE(transfer) << transfer.error().text();
      ASSERT_TRUE(transfer->post({.deadline = 5s}));
      const auto until = Clock::now() + 60s;
      for (int i = 0; i < 20 || (injected(FaultKind::kStop) == 0 && Clock::now() < until); ++i)
        EXPECT_EQ(transfer->poll(), TransferState::kRunning);
      if (by_cancel)
        transfer->cancel();
      else
        clock_.advance(5s);
      ASSERT_FALSE(transfer->wait(60s));
      const auto error = transfer->end().error;
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, by_cancel ? Code::kCancelled : Code::kTimeout) << error->text();
      EXPECT_TRUE(by_cancel || error->text().find("VIADUCT_FAULTS") != std::string::npos)
          << error->text();
      EXPECT_EQ(b_at_a_->state(), PeerState::kReady);
      ASSERT_TRUE(b_at_a_->note("ping"));
      ASSERT_TRUE(b_->waitNote(60s));
      EXPECT_TRUE(holds(into(kind), 2)) << opKindName(kind);
    }
  EXPECT_GE(injected(FaultKind::kStop), onGpus() ? 1U : 4U);
}

// One op is stopped, so some slices land and others do not. A second transfer of the rest completes
// the first.
TEST_P(FaultsContract, AFailedTransferTellsWhichBlocksHaveLanded) {
  if (onGpus()) GTEST_SKIP() << "both agents post stages, so both stop an op";
  constexpr std::uint64_t kBlock = 64 << 10, kStride = kBlock + 4096, kCount = 32;
  base_.sockets = 4;
  fake_ = "rails=4";
  openWith("stop@op:10");
  const auto here = allocateAtA(kStride * kCount);
  const auto there = allocateAtB(kStride * kCount, {.label = "large"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "large");
  const auto allOf = [&](const Pin& pin, Indices which = {}) {
    return blocks(pin, kBlock, kStride, kCount, std::move(which));
  };
  fill(*here, 1);
  fillWith(*there, std::byte{0});
  auto transfer = plan(OpKind::kWrite, allOf(*here), allOf(*there));
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  const auto until = Clock::now() + 60s;
  const auto stopped = [&] { return injected(FaultKind::kStop) != 0; };
  const auto arrived = [&](std::uint32_t block) {
    comeBehindTheAgents();
    const Part part{.offset = block * kStride, .bytes = kBlock};
    return std::ranges::equal(contents(*here, part).bytes(), contents(*there, part).bytes());
  };
  while (!stopped() && Clock::now() < until) transfer->poll();
  ASSERT_TRUE(stopped());
  for (int i = 0; i < 1000; ++i) transfer->poll();
  transfer->cancel();
  ASSERT_FALSE(transfer->wait(60s));
  const Indices landed = transfer->end().landed;
  EXPECT_LT(landed.size(), kCount);
  if (railsOf(*a_) > 1) {
    EXPECT_FALSE(landed.empty()) << "of several slices";
  }
  Indices rest;
  for (std::uint32_t block = 0; block < kCount; ++block) {
    if (std::ranges::find(landed, block) == landed.end())
      rest.push_back(block);
    else
      EXPECT_TRUE(arrived(block)) << block;
  }
  auto second = plan(OpKind::kWrite, allOf(*here, rest), allOf(*there, rest));
  ASSERT_TRUE(second) << second.error().text();
  ASSERT_TRUE(second->post());
  const auto done = second->wait(60s);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(second->end().landed.empty()) << "nothing is left to repeat";
  for (std::uint32_t block = 0; block < kCount; ++block) EXPECT_TRUE(arrived(block)) << block;
}

TEST_P(FaultsContract, ReleasedMemoryIsLeftAloneByDelayedOps) {
  openWith("delay=10s");
  auto transfer = planned(OpKind::kRead);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  const auto released = here_->release();
  ASSERT_TRUE(released) << released.error().text();
  EXPECT_EQ(transfer->end().state, TransferState::kFailed);
  fill(*here_, 3);
  clock_.advance(10s);
  ASSERT_TRUE(b_at_a_->note("ping"));
  ASSERT_TRUE(b_->waitNote(60s));
  EXPECT_TRUE(holds(*here_, 3));
}

TEST_P(FaultsContract, ACorruptedOpHasOneWrongByteAndLeavesTheSourceAlone) {
  openWith("corrupt");
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    const std::uint64_t before = injected(FaultKind::kCorrupt);
    fill(from(kind), 4);
    auto transfer = planned(kind);
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    const auto done = transfer->wait(60s);
    ASSERT_TRUE(done) << done.error().text();
    comeBehindTheAgents();
    EXPECT_TRUE(holds(from(kind), 4)) << "the source";
    const Contents got = contents(into(kind)), right = contents(from(kind));
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < kFaultBytes; ++i) wrong += got.bytes()[i] != right.bytes()[i];
    const std::uint64_t corrupted = injected(FaultKind::kCorrupt) - before;
    // Ops between two memories of GPUs are not corrupted. A byte may be hit at several stages.
    EXPECT_TRUE(onGpus() || corrupted > 0);
    EXPECT_LE(wrong, corrupted);
    EXPECT_EQ(wrong > 0, corrupted > 0) << opKindName(kind);
    EXPECT_TRUE(onGpus() || wrong == corrupted) << opKindName(kind);
    std::uint64_t moved = 0;
    for (const PathShare& share : carried(transfer->path())) moved += share.bytes;
    EXPECT_EQ(moved, kFaultBytes);
  }
}

TEST_P(FaultsContract, OtherRailsCarryTheSlicesOfADroppedRail) {
  base_.sockets = 4;
  fake_ = "rails=4";
  openWith("drop-rail=1s@op:1");
  const std::size_t rails = railsOf(*a_);
  fill(*here_, 5);
  auto transfer = planned(OpKind::kWrite);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  const auto ended = transfer->wait(60s);
  if (ended) {
    EXPECT_TRUE(rails > 1 || onGpus());
    EXPECT_TRUE(holds(*there_, 5));
  } else {
    EXPECT_TRUE(rails == 1 || onGpus()) << ended.error().text();
    EXPECT_EQ(ended.error().code, Code::kDevice);
    EXPECT_NE(ended.error().text().find("drop-rail of VIADUCT_FAULTS"), std::string::npos)
        << ended.error().text();
  }
  EXPECT_GE(injected(FaultKind::kDropRail), 1U);
  // The rail works again after the duration of the fault.
  clock_.advance(1s);
  fill(*here_, 6);
  ASSERT_TRUE(transfer->post());
  const auto again = transfer->wait(60s);
  if (onGpus() && !again) return;  // the first op of the other agent was in this transfer
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(holds(*there_, 6));
}

TEST_P(FaultsContract, AKilledPeerIsLostAtBothEndsAndComesBack) {
  openWith("kill-peer@op:1");
  const auto epoch = b_at_a_->epoch();
  auto transfer = planned(OpKind::kWrite);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  const auto ended = transfer->wait(60s);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::kPeerLost) << ended.error().text();
  EXPECT_NE(ended.error().text().find("kill-peer of VIADUCT_FAULTS"), std::string::npos)
      << ended.error().text();
  for (const auto* peer : {&b_at_a_, &a_at_b_}) {
    const auto over = peer->value().over(epoch, 60s);
    EXPECT_TRUE(over) << over.error().text();
  }
  passTimeUntil([&] { return b_at_a_->state() == PeerState::kReady && b_at_a_->epoch() > epoch; });
  waitForPin(*b_at_a_, "there");
  fill(*here_, 7);
  EXPECT_EQ(injected(FaultKind::kKillPeer), 1U);
  ASSERT_TRUE(transfer->post());
  const auto again = transfer->wait(60s);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(holds(*there_, 7));
}

TEST_P(FaultsContract, ALateLeaseExpiresUnderItsBorrower) {
  openWith("late-lease=50ms@op:2");
  const auto borrowed = [&] {
    auto lease = b_->lease(*a_at_b_, whole(*there_), {.duration = 8h});
    EXPECT_TRUE(lease) << lease.error().text();
    auto held = a_->borrow(*b_at_a_, lease->ticket());
    EXPECT_TRUE(held) << held.error().text();
    return std::pair(*std::move(lease), *std::move(held));
  };
  const auto [first, first_held] = borrowed();
  const auto [second, second_held] = borrowed();
  passTimeUntil([&, held = &second_held] { return held->state() == LeaseState::kExpired; });
  EXPECT_EQ(first_held.state(), LeaseState::kLive);
  auto late = a_->plan(OpKind::kRead, second_held, whole(*here_));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kStale) << late.error().text();
  EXPECT_EQ(injected(FaultKind::kLateLease), 1U);
}

TEST_P(FaultsContract, ManySmallOpsArriveUnderEachFaultThatKeepsThePromises) {
  constexpr std::uint64_t kBlock = 1000, kCount = 200;
  for (const char* faults : {"seed=1,delay=0s@0.3", "seed=2,delay=1ms@0.1"}) {
    openWith(faults);
    for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
      fill(from(kind), 8);
      fillWith(into(kind), std::byte{0});
      std::vector<std::uint32_t> every_second;
      for (std::uint32_t i = 0; i < kCount; i += 2) every_second.push_back(i);
      auto transfer = plan(kind, blocks(*here_, kBlock, kBlock, kCount, every_second),
                           blocks(*there_, kBlock, kBlock, kCount, every_second));
      ASSERT_TRUE(transfer) << transfer.error().text();
      for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(transfer->post());
        passTimeUntil([&] { return transfer->state() != TransferState::kRunning; });
        const auto done = transfer->wait(60s);
        ASSERT_TRUE(done) << done.error().text();
      }
      comeBehindTheAgents();
      const Contents got = contents(into(kind)), right = contents(from(kind));
      for (const std::uint32_t i : every_second)
        ASSERT_TRUE(std::ranges::equal(got.bytes().subspan(i * kBlock, kBlock),
                                       right.bytes().subspan(i * kBlock, kBlock)))
            << faults << " block " << i;
    }
  }
}

VIADUCT_INSTANTIATE_CONTRACT(FaultsContract);

TEST(Faults, AreRefusedUnlessTheyAreAskedForTwice) {
  const auto refused = Agent::open({.listen = {}, .faults = "stop@op:1"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_NE(refused.error().text().find("VIADUCT_FAULTS_ALLOWED"), std::string::npos)
      << refused.error().text();
  EXPECT_FALSE(Agent::open({.listen = {}})->statistics().faults);
}

}  // namespace viaduct::testing
