// A peer's process is killed in each phase. All waiting threads wake, and the restarted process
// works.
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

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
  // `storm` answers after two transfers of 512 ops each, so the fault comes later.
  victim_ = survivor_.start("victim", " faults=kill-peer@op:5000");
  const auto data = survivor_.memory(Survivor::kData, "target");
  const Peer peer = survivor_.peer();
  const auto epoch = peer.epoch();
  victim_->must("plan t write survivor data target 65536");
  victim_->must("storm t");
  const Status over = peer.over(epoch, 2 * kWakes);
  ASSERT_TRUE(over) << over.error().text();
  // The victim lives, and may be in the midst of a chunk.
  for (const auto end = Clock::now() + 20s; !peer.settled() && Clock::now() < end;)
    survivor_.agent().poll();
  EXPECT_TRUE(peer.settled());
  const Status again = peer.ready(20s);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_GT(peer.epoch(), epoch);
  victim_->must("ready survivor 20000");
  survivor_.expectWorks(*victim_);
}

TEST_P(PeerDies, BetweenTheMarksOfAStream) {
  const auto data = survivor_.memory(Survivor::kSmall, "target");
  const auto stream = survivor_.agent().openMarks(survivor_.peer(), {.number = 7, .marks = 8});
  ASSERT_TRUE(stream) << stream.error().text();
  victim_->must("plan t write survivor small target 65536");
  victim_->must("mark t 7 4");
  ASSERT_TRUE(stream->wait(3, kWakes));
  std::optional<Error> failure;
  std::thread waiter([&] {
    if (const Status missing = stream->wait(4, 2 * kWakes); !missing) failure = missing.error();
  });
  victim_->process().kill();
  const auto killed = Clock::now();
  waiter.join();
  expectNoticed(killed, "wait for a mark ended");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, Code::kPeerLost) << failure->text();
  EXPECT_EQ(failure->peer, "victim");
  EXPECT_TRUE(stream->wait(2, 0ms));
  EXPECT_EQ(stream->waitCount(5, 0ms).error().code, Code::kPeerLost);
  victim_ = survivor_.start();
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

// The number of pidfds that this process holds.
int processDescriptors() {
  int count = 0;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(one.path(), gone).string();
    if (target == "anon_inode:[pidfd]" || target.starts_with("pidfd:")) ++count;
  }
  return count;
}

class PeersDieInACopy : public ::testing::TestWithParam<DataPath> {
 protected:
  Survivor survivor_{GetParam(), 2s};
};

// Most peers are lost while they are frozen inside a chunk, which only their death ends.
TEST_P(PeersDieInACopy, AndLeaveNoDescriptors) {
  const auto data = survivor_.memory(Survivor::kData, "target");
  std::vector<Peer> peers;  // held, but not asked whether they are settled
  for (int i = 0; i < 3; ++i) {
    const std::string name = "victim" + std::to_string(i);
    const auto victim = survivor_.start(name);
    victim->must("plan t write survivor data target 1048576");
    victim->must("storm t");
    const Peer& peer = peers.emplace_back(survivor_.peer(name));
    victim->process().stop();
    ASSERT_TRUE(peer.over(peer.epoch(), 2 * kWakes));
    victim->process().kill();
  }
  const auto end = Clock::now() + 2 * kWakes;
  while (processDescriptors() != 0 && Clock::now() < end) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(processDescriptors(), 0);
}

// Only mapped memory is tested, because a copy by a system call ends before its process stops.
INSTANTIATE_TEST_SUITE_P(Ways, PeersDieInACopy, ::testing::Values(kDataPaths[0]),
                         [](const auto& path) { return std::string(path.param.name); });
INSTANTIATE_TEST_SUITE_P(Ways, PeerDies, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
