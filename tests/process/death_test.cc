// A peer's process is killed in each phase. All waiting threads wake, and the restarted process
// works.
#include <thread>

#include "process/pair.h"
#include "support/free_port.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

// The promise is 0.5 s. A busy machine gets more, and the test prints the figure.
constexpr auto kWakes = 10s;

class PeerDies : public ::testing::TestWithParam<DataPath> {
 protected:
  void expectNoticed(Clock::time_point killed, const char* who) {
    std::printf("%s after %lld ms\n", who, static_cast<long long>(since(killed)));
    EXPECT_LT(Clock::now() - killed, kWakes) << who;
  }
  // Kills the victim during a storm of the survivor's transfers, and restarts it.
  void killInStorm(OpKind kind) {
    const auto data = survivor_.memory(Survivor::kData, "");
    Transfer transfer = survivor_.plan(kind, data, "data");
    Storm storm(transfer);
    ASSERT_TRUE(storm.finished(2));
    victim_->process().kill();
    const auto killed = Clock::now();  // once it is dead, which may take long on a busy machine
    const auto failure = storm.failure(2 * kWakes);
    ASSERT_TRUE(failure) << "the transfer still runs";
    expectNoticed(killed, "transfer failed");
    EXPECT_EQ(failure->code, Code::kPeerLost) << failure->text();
    EXPECT_NE(transfer.end().state, TransferState::kRunning);
    victim_ = survivor_.start();
    survivor_.expectWorks(*victim_);
  }

  Survivor survivor_{GetParam()};
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
};

TEST_P(PeerDies, WhileIdle) {
  const Peer peer = survivor_.peer();
  const auto epoch = peer.epoch();
  victim_->process().kill();
  const auto killed = Clock::now();
  EXPECT_TRUE(peer.over(epoch, 2 * kWakes));
  expectNoticed(killed, "over");
  EXPECT_NE(peer.state(), PeerState::kReady);
  EXPECT_TRUE(peer.settled());
  victim_ = survivor_.start();
  EXPECT_GT(survivor_.peer().epoch(), epoch);
  survivor_.expectWorks(*victim_);
}

TEST_P(PeerDies, InTheMiddleOfAWriteToIt) { killInStorm(OpKind::kWrite); }
TEST_P(PeerDies, InTheMiddleOfAReadFromIt) { killInStorm(OpKind::kRead); }

TEST_P(PeerDies, InTheMiddleOfItsOwnWrite) {
  const auto data = survivor_.memory(Survivor::kData, "target");
  victim_->must("plan t write survivor data target 65536");
  victim_->must("storm t");
  const Peer peer = survivor_.peer();
  victim_->process().kill();
  const auto killed = Clock::now();
  ASSERT_TRUE(peer.over(peer.epoch(), 2 * kWakes));
  expectNoticed(killed, "over");
  EXPECT_TRUE(peer.settled());
  data.fill(0x77);
  victim_ = survivor_.start();
  survivor_.expectWorks(*victim_);
  EXPECT_EQ(data.differ(0x77), 0);
}

TEST_P(PeerDies, InTheMiddleOfNotes) {
  const Peer peer = survivor_.peer();
  const std::string text(kMaxNoteBytes / 4, 'n');
  std::optional<Error> failure;
  std::atomic<int> sent = 0;
  std::thread sender([&] {
    while (!failure) {
      const Status status = peer.note(text);
      if (status) ++sent;
      // A full backlog is no failure here; only the loss of the peer is.
      if (!status && status.error().code != Code::kBusy) failure = status.error();
      if (!status) std::this_thread::yield();
    }
  });
  victim_->must("takenote 10000");
  victim_->process().kill();
  const auto killed = Clock::now();
  sender.join();
  expectNoticed(killed, "note refused");
  EXPECT_EQ(failure->code, Code::kPeerLost) << failure->text();
  victim_ = survivor_.start();
  survivor_.expectWorks(*victim_);
}

// kill-peer of VIADUCT_FAULTS ends the session as a death does, and both processes go on.
TEST_P(PeerDies, ByAnInjectedFault) {
  victim_.reset();
  victim_ = survivor_.start("victim", " faults=kill-peer@op:600");  // in its second transfer
  const auto data = survivor_.memory(Survivor::kData, "target");
  const Peer peer = survivor_.peer();
  const auto epoch = peer.epoch();
  victim_->must("plan t write survivor data target 65536");
  victim_->must("storm t");
  const Status over = peer.over(epoch, 2 * kWakes);
  ASSERT_TRUE(over) << over.error().text();
  EXPECT_TRUE(peer.settled());
  const Status again = peer.ready(20s);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_GT(peer.epoch(), epoch);
  victim_->must("ready survivor 20000");
  survivor_.expectWorks(*victim_);
}

TEST_P(PeerDies, WhileItIsBeingReached) {
  PeerProcess other(survivor_.settings("other"));
  const auto card = fromHex(other.card());
  other.process().stop();  // the system accepts connections, but no process answers
  auto peer = survivor_.agent().importCard(card);
  ASSERT_TRUE(peer) << peer.error().text();
  other.process().kill();
  const auto start = Clock::now();
  const Status ready = peer->ready(1s);
  EXPECT_LT(Clock::now() - start, 1s + kWakes);
  ASSERT_FALSE(ready);
  std::printf("%s\n", ready.error().text().c_str());
  EXPECT_NE(ready.error().text().find("other"), std::string::npos) << "an error names the peer";
}

TEST_P(PeerDies, AndIsReachedAgainAtTheSameAddressByTheSurvivor) {
  PeerProcess first(survivor_.settings("server") + " secret=s listen=" + freeAddress());
  const auto card = Card::decode(fromHex(first.card()));
  ASSERT_TRUE(card) << card.error().text();
  auto peer = survivor_.agent().connect(*card);
  ASSERT_TRUE(peer) << peer.error().text();
  ASSERT_TRUE(peer->ready(10s));
  const auto epoch = peer->epoch();
  first.process().kill();
  ASSERT_TRUE(peer->over(epoch, 10s));
  PeerProcess second(survivor_.settings("server") + " secret=s listen=" + card->addresses.at(0));
  const Status again = peer->ready(20s);
  EXPECT_TRUE(again) << again.error().text();
  EXPECT_GT(peer->epoch(), epoch);
}

INSTANTIATE_TEST_SUITE_P(Ways, PeerDies, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
