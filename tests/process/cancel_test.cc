// Cancelled transfers and withdrawn memory: no byte moves afterwards, on either side.
#include "process/pair.h"
#include "support/bytes.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

// The times are long, because a peer that does not confirm within the grace counts as lost, even on
// a slow machine.
class Cancelled : public ::testing::TestWithParam<DataPath> {
 protected:
  // Cancels a post in its middle, and then gives the buffers of both ends another use.
  void cancelInTheMiddle(OpKind kind) {
    const auto data = survivor_.memory(Survivor::kData, "");
    data.fill(1);
    Transfer transfer = survivor_.plan(kind, data, "data");
    ASSERT_TRUE(transfer.post());
    transfer.cancel();
    static_cast<void>(transfer.wait(10s));
    const TransferEnd end = transfer.end();
    EXPECT_TRUE(end.state == TransferState::kCancelled || end.state == TransferState::kDone)
        << transferStateName(end.state);
    data.fill(0x3c);
    // The target's memory is free once a later note has arrived.
    ASSERT_TRUE(survivor_.peer().note("yours"));
    EXPECT_EQ(victim_->must("takenote 10000"), "survivor yours");
    victim_->must("fill data 61");
    survivor_.expectWorks(*victim_);
    EXPECT_EQ(data.differ(0x3c), 0);
    EXPECT_EQ(victim_->number("differ data 61"), 0);
    // The same plan can be posted again.
    ASSERT_TRUE(transfer.post());
    const Status ended = transfer.wait(10s);
    EXPECT_TRUE(ended) << ended.error().text();
    EXPECT_EQ(data.differ(kind == OpKind::kRead ? 61 : 0x3c), 0);
  }

  Survivor survivor_{GetParam(), 10s, 10s};
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
};

TEST_P(Cancelled, AWriteInTheMiddle) { cancelInTheMiddle(OpKind::kWrite); }
TEST_P(Cancelled, AReadInTheMiddle) { cancelInTheMiddle(OpKind::kRead); }

// The detection time is long, so that no peer counts as lost for its silence during a test.
class TakenBack : public ::testing::TestWithParam<DataPath> {
 protected:
  static constexpr auto kGrace = 500ms;
  static constexpr auto kBusy = 10s;  // extra time for a busy machine

  Survivor survivor_{GetParam(), 60s, kGrace};
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
};

TEST_P(TakenBack, ATransferToAFrozenPeerEndsWithinGraceWhenCancelled) {
  const auto data = survivor_.memory(Survivor::kData, "");
  Transfer transfer = survivor_.plan(OpKind::kRead, data, "data");
  victim_->process().stop();
  ASSERT_TRUE(transfer.post());
  const auto start = Clock::now();
  transfer.cancel();
  static_cast<void>(transfer.wait(30s));
  std::printf("ended %lld ms after cancel\n", static_cast<long long>(since(start)));
  EXPECT_LT(Clock::now() - start, kGrace + kBusy);
  EXPECT_NE(transfer.end().state, TransferState::kRunning);
  data.fill(0x2a);
  victim_->process().resume();
  victim_->must("ready survivor 20000");
  ASSERT_TRUE(survivor_.peer().ready(20s));
  survivor_.expectWorks(*victim_);
  EXPECT_EQ(data.differ(0x2a), 0);
}

TEST_P(TakenBack, ADeadlineEndsATransferToAFrozenPeer) {
  const auto data = survivor_.memory(Survivor::kData, "");
  Transfer transfer = survivor_.plan(OpKind::kRead, data, "data");
  victim_->process().stop();
  const auto start = Clock::now();
  ASSERT_TRUE(transfer.post({.deadline = 100ms}));
  static_cast<void>(transfer.wait(30s));
  std::printf("ended %lld ms after post\n", static_cast<long long>(since(start)));
  EXPECT_LT(Clock::now() - start, 100ms + kGrace + kBusy);
  EXPECT_NE(transfer.end().state, TransferState::kRunning);
  victim_->process().resume();
}

TEST_P(TakenBack, WithdrawnMemoryIsRefused) {
  const auto mine = survivor_.memory(Survivor::kSmall, "");
  Transfer transfer = survivor_.plan(OpKind::kWrite, mine, "small", 4096);
  victim_->must("fill small 9");
  victim_->must("release small");
  mine.fill(1);
  Status ended = transfer.post();
  if (ended) ended = transfer.wait(10s);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::kDenied) << ended.error().text();
  EXPECT_EQ(survivor_.peer().state(), PeerState::kReady) << "a refusal is no loss";
}

TEST_P(TakenBack, MemoryIsWithdrawnInTheMiddleOfAPeersStorm) {
  auto data = survivor_.memory(Survivor::kData, "target");
  victim_->must("plan t write survivor data target 65536");
  victim_->must("storm t");
  const Status released = data.pin->release();
  EXPECT_TRUE(released) << released.error().text();
  // Memory of Agent::allocate is gone with its pin. Only private memory can be checked.
  fillWith(data.own, std::byte{0x21});
  const std::string failure = victim_->must("calm t 10000");
  EXPECT_NE(failure.find(codeName(Code::kDenied)), std::string::npos) << failure;
  survivor_.expectWorks(*victim_);
  EXPECT_TRUE(allAre(data.own, std::byte{0x21}));
}

INSTANTIATE_TEST_SUITE_P(Ways, Cancelled, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });
INSTANTIATE_TEST_SUITE_P(Ways, TakenBack, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
