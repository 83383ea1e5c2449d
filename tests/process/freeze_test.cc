// A peer's process is stopped in the middle of its work and continues later. The stop is noticed in
// time, freed memory stays untouched (docs/failure.md says when memory is free), and the pair
// recovers.
#include <atomic>
#include <thread>

#include "process/pair.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kDetect = 2s;
constexpr auto kSlack = 500ms + 10s;  // the promised time, and 10 s for a busy machine

class PeerFreezes : public ::testing::TestWithParam<DataPath> {
 protected:
  // Waits until the survivor's memory at the target side is free: the session is over, and the peer
  // is settled. Continues the victim if it froze inside a chunk. Returns whether the memory was
  // free without that.
  bool waitFree(const Peer& peer, std::uint64_t epoch) {
    const auto stopped = Clock::now();
    EXPECT_TRUE(peer.over(epoch, 20s));
    std::printf("over %lld ms after the stop\n", static_cast<long long>(since(stopped)));
    EXPECT_LT(Clock::now() - stopped, kDetect + kSlack);
    const bool settled = peer.settled();
    if (!settled) victim_->process().resume();
    const auto end = Clock::now() + 10s;
    while (!peer.settled() && Clock::now() < end) survivor_.agent().poll();
    EXPECT_TRUE(peer.settled());
    std::printf("settled %s\n", settled ? "at once" : "when it ran again");
    return settled;
  }
  void recover() {
    victim_->process().resume();
    victim_->must("ready survivor 20000");
    ASSERT_TRUE(survivor_.peer().ready(20s));
    survivor_.expectWorks(*victim_);
  }
  void freezeInStorm(OpKind kind);
  void freezeInItsStorm(const std::string& kind);

  Survivor survivor_{GetParam(), kDetect};
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
};

TEST_P(PeerFreezes, WhileIdle) {
  const Peer peer = survivor_.peer();
  const auto epoch = peer.epoch();
  victim_->process().stop();
  EXPECT_TRUE(waitFree(peer, epoch)) << "nothing was under way";
  recover();
  EXPECT_GT(survivor_.peer().epoch(), epoch);
}

// The survivor's buffer is its own once its transfer has ended.
void PeerFreezes::freezeInStorm(OpKind kind) {
  const auto data = survivor_.memory(Survivor::kData, "");
  Transfer transfer = survivor_.plan(kind, data, "data");
  Storm storm(transfer);
  ASSERT_TRUE(storm.finished(2));
  const auto stopped = Clock::now();
  victim_->process().stop();
  const auto failure = storm.failure(20s);
  ASSERT_TRUE(failure);
  std::printf("failed %lld ms after the stop\n", static_cast<long long>(since(stopped)));
  EXPECT_LT(Clock::now() - stopped, kDetect + kSlack);
  data.fill(0x6b);
  recover();
  EXPECT_EQ(data.differ(0x6b), 0);
  // A plan of the earlier session is valid in this one, because the same memory is registered.
  Status again = transfer.post();
  if (again) again = transfer.wait(20s);
  EXPECT_TRUE(again) << again.error().text();
}
TEST_P(PeerFreezes, InTheMiddleOfAWriteToIt) { freezeInStorm(OpKind::kWrite); }
TEST_P(PeerFreezes, InTheMiddleOfAReadFromIt) { freezeInStorm(OpKind::kRead); }

// The target's memory is free after Peer::over and once Peer::settled. The stopped initiator's
// memory is free once its transfer has ended.
void PeerFreezes::freezeInItsStorm(const std::string& kind) {
  const auto data = survivor_.memory(Survivor::kData, "target");
  victim_->must("plan t " + kind + " survivor data target 65536");
  victim_->must("storm t");
  const Peer peer = survivor_.peer();
  const auto epoch = peer.epoch();
  victim_->process().stop();
  const bool between = waitFree(peer, epoch);
  data.fill(0x33);
  {
    // A process that was stopped between two posts would make its next post once it is admitted
    // again. It is not admitted while another process has its name.
    const auto other = between ? survivor_.start() : nullptr;
    victim_->process().resume();
    const std::string failure = victim_->must("calm t 20000");
    EXPECT_NE(failure.find(codeName(Code::kPeerLost)), std::string::npos) << failure;
  }
  victim_->must("fill data 68");
  recover();
  EXPECT_EQ(data.differ(0x33), 0);
  EXPECT_EQ(victim_->number("differ data 68"), 0);
}
TEST_P(PeerFreezes, InTheMiddleOfItsOwnWrite) { freezeInItsStorm("write"); }
TEST_P(PeerFreezes, InTheMiddleOfItsOwnRead) { freezeInItsStorm("read"); }

TEST_P(PeerFreezes, AndIsKilledAfterwards) {
  const auto data = survivor_.memory(Survivor::kData, "target");
  victim_->must("plan t write survivor data target 65536");
  victim_->must("storm t");
  const Peer peer = survivor_.peer();
  const auto epoch = peer.epoch();
  victim_->process().stop();
  ASSERT_TRUE(peer.over(epoch, 20s));
  victim_->process().kill();
  victim_ = survivor_.start();
  EXPECT_TRUE(survivor_.peer().settled());
  survivor_.expectWorks(*victim_);
}

TEST_P(PeerFreezes, AndAWithdrawalDoesNotWaitForIt) {
  auto data = survivor_.memory(Survivor::kData, "target");
  victim_->must("plan t write survivor data target 65536");
  victim_->must("storm t");
  victim_->process().stop();
  const auto start = Clock::now();
  const Status released = data.pin->release();
  EXPECT_LT(Clock::now() - start, kDetect + kSlack);
  if (!released) {
    EXPECT_EQ(released.error().code, Code::kPeerLost);
    std::printf("%s\n", released.error().text().c_str());
  }
  victim_->process().resume();
  victim_->must("calm t 20000");
  recover();
}

TEST_P(PeerFreezes, AndWithdrawingMuchMemoryLosesNoOtherPeer) {
  const auto third = survivor_.start("third");
  const auto epoch = survivor_.peer("third").epoch();
  auto data = survivor_.memory(Survivor::kData, "target");
  std::vector<Survivor::Memory> more;
  // If each release waited for the whole grace, all would take twice the allowed time.
  for (int i = 0; i < 42; ++i) more.push_back(survivor_.memory(4096, ""));
  victim_->must("plan t write survivor data target 65536");
  victim_->must("storm t");
  victim_->process().stop();
  const auto start = Clock::now();
  for (auto& memory : more) static_cast<void>(memory.pin->release());
  std::printf("withdrawn after %lld ms\n", static_cast<long long>(since(start)));
  EXPECT_LT(Clock::now() - start, kSlack)
      << "the frozen peer was waited for once, within the grace";
  EXPECT_TRUE(third->process().ask("note survivor hello").value_or("").starts_with("ok"));
  const auto note = survivor_.agent().waitNote(5s);
  ASSERT_TRUE(note) << note.error().text();
  EXPECT_EQ(survivor_.peer("third").epoch(), epoch);
  victim_->process().resume();
}

// Pin::release() and Peer::settled() while a peer is stopped and its session lives.
class ReleaseFromAFrozenPeer : public ::testing::TestWithParam<DataPath> {
 protected:
  static constexpr std::uint64_t kBytes = 1 << 20;

  // `victim` copies without a pause between its own memory and all of `target` here.
  static void storm(PeerProcess& victim, const std::string& id, const std::string& kind,
                    const std::string& target) {
    const std::string bytes = std::to_string(kBytes);
    victim.must("memory " + id + " " + bytes);
    victim.must("plan " + id + " " + kind + " survivor " + id + " " + target + " " + bytes);
    victim.must("storm " + id);
  }
  bool waitSettled(const Peer& peer) {
    const auto end = Clock::now() + 20s;
    while (!peer.settled() && Clock::now() < end) survivor_.agent().poll();
    return peer.settled();
  }

  // Tries again, because a running peer that gets no processor for some milliseconds counts as
  // stopped.
  void expectRelease() {
    const auto end = Clock::now() + 20s;
    Status released = Ok{};
    do released = survivor_.memory(4096, "").pin->release();
    while (!released && released.error().code == Code::kPeerLost && Clock::now() < end);
    EXPECT_TRUE(released) << released.error().text();
  }

  Survivor survivor_{GetParam(), 60s, 50ms};
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
};

TEST_P(ReleaseFromAFrozenPeer, SaysWhetherTheMemoryMayStillChange) {
  const Peer peer = survivor_.peer();
  const auto busy = survivor_.memory(kBytes, "busy");
  storm(*victim_, "b", "read", "busy");
  int inside = 0;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const std::string name = "target" + std::to_string(round);
    const auto target = survivor_.memory(kBytes, name);
    storm(*victim_, "t", "write", name);
    victim_->process().stop();
    const Status released = target.pin->release();
    const bool settled = peer.settled();
    EXPECT_EQ(released.has_value(), settled);
    if (!released) {
      ++inside;
      EXPECT_EQ(released.error().code, Code::kPeerLost) << released.error().text();
      EXPECT_EQ(released.error().peer, "victim");
      EXPECT_FALSE(target.pin->release()) << "asked again, it says the same";
    }
    if (settled) target.fill(0x22);
    victim_->process().resume();
    ASSERT_TRUE(waitSettled(peer)) << "it runs again";
    if (!settled) target.fill(0x22);
    // Releases do not wait for the running peer, which copies elsewhere all the time.
    for (int i = 0; i < 3; ++i) expectRelease();
    EXPECT_NE(victim_->must("calm t 20000").find(codeName(Code::kDenied)), std::string::npos);
    EXPECT_EQ(target.differ(0x22), 0);
  }
  std::printf("%d of 12 stopped inside a copy\n", inside);
}

TEST_P(ReleaseFromAFrozenPeer, IsOverWhenThePeerIsKilled) {
  const auto target = survivor_.memory(kBytes, "target");
  storm(*victim_, "t", "write", "target");
  const Peer peer = survivor_.peer();
  victim_->process().stop();
  const bool released = target.pin->release().has_value();
  EXPECT_EQ(released, peer.settled());
  victim_->process().kill();
  EXPECT_TRUE(peer.settled());
  target.fill(0x22);
  victim_ = survivor_.start();
  survivor_.expectWorks(*victim_);
  EXPECT_EQ(target.differ(0x22), 0);
}

// After the agent has closed, only Pins and Peers that outlive it report whether memory is free.
TEST_P(ReleaseFromAFrozenPeer, IsReportedAfterTheAgentHasClosed) {
  for (const bool frozen : {false, true, true, true, true}) {
    SCOPED_TRACE(frozen ? "frozen" : "running");
    Survivor closing(GetParam(), 60s, 50ms);
    const auto victim = closing.start();
    const auto target = closing.memory(kBytes, "target");
    storm(*victim, "t", "write", "target");
    const Peer peer = closing.peer();
    if (frozen) victim->process().stop();
    {
      const Agent ends = std::move(closing.agent());
    }
    const Status released = target.pin->release();
    const bool settled = peer.settled();
    EXPECT_EQ(released.has_value(), settled);
    if (!frozen) {
      EXPECT_TRUE(settled) << "it leaves within the grace";
    }
    if (settled) target.fill(0x22);
    if (frozen) victim->process().resume();
    const auto end = Clock::now() + 20s;
    while (!peer.settled() && Clock::now() < end) std::this_thread::yield();
    ASSERT_TRUE(peer.settled());
    if (!settled) target.fill(0x22);
    victim->must("calm t 20000");
    EXPECT_EQ(target.differ(0x22), 0);
  }
}

// Only the thread that waits for the frozen peer is held up.
TEST_P(ReleaseFromAFrozenPeer, DelaysNoOtherThread) {
  Survivor patient(GetParam(), 60s, 60s);
  const auto victim = patient.start();
  const auto third = patient.start("third");
  for (int round = 0; round < 20; ++round) {
    const std::string name = "target" + std::to_string(round);
    const auto target = patient.memory(kBytes, name);
    storm(*victim, "t", "write", name);
    victim->process().stop();
    std::atomic<bool> released = false;
    std::thread releases([&] {
      EXPECT_TRUE(target.pin->release()) << "the peer went on within the grace";
      released = true;
    });
    // Continues once the release has begun, or has ended.
    const Peer peer = patient.peer();
    while (!released && peer.settled()) std::this_thread::yield();
    third->must("note survivor hello");
    const auto note = patient.agent().waitNote(20s);
    const bool waited = !released;
    victim->process().resume();
    releases.join();
    ASSERT_TRUE(note) << note.error().text();
    if (waited) return;
    victim->must("calm t 20000");
  }
  std::printf("never stopped inside a copy\n");
}

INSTANTIATE_TEST_SUITE_P(Ways, ReleaseFromAFrozenPeer, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });
INSTANTIATE_TEST_SUITE_P(Ways, PeerFreezes, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
