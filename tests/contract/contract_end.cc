// The contract: every transfer ends once and in time. Then only the caller touches its memory.
// Notes come after data.
#include <poll.h>

#include <atomic>
#include <thread>

#include "backends/fake/fake_rail.h"
#include "contract/backend_contract.h"

namespace viaduct::testing {
namespace {

// No poll of the fake rails moves anything or gives anything back while this object lives.
class NoPollThatMoves {
 public:
  NoPollThatMoves() {
    fake::interruption.with([](auto& one) { one = [] { return false; }; });
  }
  ~NoPollThatMoves() {
    fake::interruption.with([](auto& one) { one = nullptr; });
  }
  NoPollThatMoves(const NoPollThatMoves&) = delete;
  NoPollThatMoves& operator=(const NoPollThatMoves&) = delete;
};

}  // namespace

TEST_P(BackendContract, ANoteComesAfterTheDataItAnnounces) {
  constexpr std::uint64_t kBytes = 200'000;
  const auto here = allocateAtA(kBytes);
  const auto there = allocateAtB(kBytes, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  auto transfer = plan(OpKind::kWrite, whole(*here), whole(*there));
  ASSERT_TRUE(transfer);
  for (std::uint64_t salt = 1; salt <= 50; ++salt) {
    fill(*here, salt);
    const auto text = std::to_string(salt);
    ASSERT_TRUE(transfer->post({.note = std::as_bytes(std::span(text))}));
    // The test makes no call on the initiator until the note has arrived.
    const auto note = b_->waitNote(60s);
    ASSERT_TRUE(note) << note.error().text();
    EXPECT_EQ(note->text(), text);
    ASSERT_TRUE(holds(*there, salt)) << salt;
    ASSERT_TRUE(transfer->wait(60s));
  }
}

TEST_P(BackendContract, NotesOfAnySizeArriveOnceAndInOrder) {
  std::vector<std::byte> big(kMaxNoteBytes);
  fill(big, 4);
  ASSERT_TRUE(b_at_a_->note(std::string_view("a\0b", 3)));
  ASSERT_TRUE(b_at_a_->note(big));
  ASSERT_TRUE(b_at_a_->note(""));
  EXPECT_EQ(b_->waitNote(60s)->text(), std::string_view("a\0b", 3));
  EXPECT_TRUE(b_->waitNote(60s)->bytes == big);
  EXPECT_EQ(b_->waitNote(60s)->bytes.size(), 0U);
  EXPECT_FALSE(b_->takeNote());
  big.push_back(std::byte{0});
  const auto refused = b_at_a_->note(big);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
}

TEST_P(BackendContract, TheCallbackRunsOncePerPostAndNeverInsideIt) {
  const auto here = allocateAtA(4096);
  const auto there = allocateAtB(4096, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  std::atomic<int> ends{0};
  std::atomic<bool> posting{false}, inside{false};
  const auto poster = std::this_thread::get_id();
  auto transfer =
      plan(OpKind::kWrite, whole(*here), whole(*there), {.on_end = [&](const TransferEnd& end) {
             inside = inside || (posting && std::this_thread::get_id() == poster);
             if (end.state == TransferState::kDone) ++ends;
           }});
  ASSERT_TRUE(transfer);
  for (int i = 1; i <= 20; ++i) {
    posting = true;
    ASSERT_TRUE(transfer->post());
    posting = false;
    // The test does not poll, so the agent's progress thread has to make the callback.
    const auto until = Clock::now() + 60s;
    while (ends < i && Clock::now() < until) std::this_thread::yield();
    ASSERT_EQ(ends, i);
  }
  EXPECT_FALSE(inside);
}

TEST_P(BackendContract, ACancelledTransferLeavesBothMemoriesAlone) {
  const std::uint64_t kBytes = sized(32 << 20);
  const auto here = allocateAtA(kBytes);
  const auto there = allocateAtB(kBytes, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
    for (int round = 0; round < 10; ++round) {
      auto transfer = plan(kind, whole(*here), whole(*there));
      ASSERT_TRUE(transfer);
      ASSERT_TRUE(transfer->post());
      for (int i = 0; i < round; ++i) transfer->poll();
      transfer->cancel();
      static_cast<void>(transfer->wait(60s));
      const auto state = transfer->end().state;
      ASSERT_TRUE(state == TransferState::kCancelled || state == TransferState::kDone)
          << transferStateName(state);
      comeBehindTheAgents();
      fill(*here, 100);
      fill(*there, 200);
      // Waits for a later note, so that late bytes have had time to arrive.
      ASSERT_TRUE(b_at_a_->note("ping"));
      ASSERT_TRUE(b_->waitNote(60s));
      ASSERT_TRUE(holds(*here, 100)) << opKindName(kind) << round;
      ASSERT_TRUE(holds(*there, 200)) << opKindName(kind) << round;
    }
}

TEST_P(BackendContract, ADeadlineThatHasPassedEndsTheTransfer) {
  const auto here = allocateAtA(sized(64 << 20));
  const auto there = allocateAtB(sized(64 << 20), {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  auto transfer = plan(OpKind::kWrite, whole(*here), whole(*there));
  ASSERT_TRUE(transfer);
  ASSERT_TRUE(transfer->post({.deadline = Deadline(0ms)}));
  const auto ended = transfer->wait(60s);
  EXPECT_FALSE(transfer->end().state == TransferState::kRunning);
  if (!ended) {
    EXPECT_EQ(ended.error().code, Code::kTimeout) << ended.error().text();
    EXPECT_EQ(transfer->end().state, TransferState::kFailed);
  }
  // The transfer can be posted again.
  ASSERT_TRUE(transfer->post());
  const auto again = transfer->wait(60s);
  EXPECT_TRUE(again) << again.error().text();
}

TEST_P(BackendContract, EachTransferEndsAtItsOwnDeadline) {
  inject("stop");
  open();
  const auto here = allocateAtA(64 << 10);
  const auto there = allocateAtB(64 << 10, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  std::vector<Transfer> transfers;
  for (const auto deadline : {3600s, 30s, 20s, 10s}) {
    auto transfer =
        plan(OpKind::kWrite, blocks(*here, 4096, 8192, 8), blocks(*there, 4096, 8192, 8));
    ASSERT_TRUE(transfer);
    ASSERT_TRUE(transfer->post({.deadline = deadline}));
    transfers.push_back(std::move(*transfer));
  }
  transfers[3].cancel();  // its deadline would be the first
  EXPECT_FALSE(transfers[3].wait(60s));
  clock_.advance(10s);
  for (const std::size_t next : {2U, 1U}) {
    clock_.advance(10s);
    const auto ended = transfers[next].wait(60s);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::kTimeout) << ended.error().text();
    EXPECT_EQ(transfers[next].end().state, TransferState::kFailed);
  }
  EXPECT_EQ(transfers[0].end().state, TransferState::kRunning);
}

// A transfer fails because one of its pins is withdrawn, while its ops hang until the deadline,
// although they were cancelled. Only the fake backend lets ops hang.
TEST_P(BackendContract, AFailedTransferDoesNotOutliveItsDeadline) {
  if (backend() != "fake") GTEST_SKIP() << "skipped: no ops that hang";
  fake_ = "rails=1";
  open();
  constexpr std::uint64_t kBlock = 1 << 20;
  const auto here = allocateAtA(4 * kBlock);
  const auto kept = allocateAtB(2 * kBlock, {.label = "kept"});
  auto gone = allocateAtB(kBlock, {.label = "gone"});
  ASSERT_TRUE(here && kept && gone);
  for (const char* label : {"kept", "gone"}) waitForPin(*b_at_a_, label);
  const std::vector<viaduct::Run> runs{{gone->info().address, kBlock, kBlock, 1},
                                       {kept->info().address, kBlock, kBlock, 2}};
  auto transfer =
      plan(OpKind::kWrite, blocks(*here, kBlock, kBlock + 4096, 3), {*Blocks::of(runs), {}});
  ASSERT_TRUE(transfer) << transfer.error().text();
  const NoPollThatMoves hanging;
  ASSERT_TRUE(transfer->post({.deadline = 1s}));
  {
    const Pin dropped = std::move(*gone);
  }
  while (b_at_a_->pins().size() != 1) a_->poll();
  // The ops have been cancelled. The deadline comes, and then the end of the grace.
  for (const Duration next : {Duration(200ms), Duration(800ms), Duration(base_.grace)}) {
    EXPECT_EQ(transfer->state(), TransferState::kRunning);
    clock_.advance(next);
    a_->poll();
  }
  ASSERT_FALSE(transfer->wait(60s));
  EXPECT_EQ(transfer->end().state, TransferState::kFailed);
  EXPECT_EQ(transfer->end().error->code, Code::kDenied) << transfer->end().error->text();
}

TEST_P(BackendContract, AWithdrawnPinIsRefused) {
  const auto here = allocateAtA(8192);
  auto there = allocateAtB(8192, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  auto transfer = plan(OpKind::kWrite, whole(*here), whole(*there));
  ASSERT_TRUE(transfer);
  ASSERT_TRUE(transfer->post());
  ASSERT_TRUE(transfer->wait(60s));
  const auto released = there->release();
  ASSERT_TRUE(released) << released.error().text();
  fill(*there, 5);
  // The post fails, or the transfer does later, depending on whether the release is known by then.
  if (transfer->post()) {
    EXPECT_FALSE(transfer->wait(60s));
  }
  EXPECT_TRUE(holds(*there, 5));
}

TEST_P(BackendContract, ReleasingAPinUnderTrafficLeavesItsMemoryAlone) {
  const std::uint64_t kBytes = sized(8 << 20);
  for (const bool at_target : {true, false})
    for (int round = 0; round < 5; ++round) {
      auto mine = allocateAtA(kBytes);
      auto theirs = allocateAtB(kBytes, {.label = "r" + std::to_string(round)});
      ASSERT_TRUE(mine && theirs);
      waitForPin(*b_at_a_, "r" + std::to_string(round));
      auto transfer =
          plan(at_target ? OpKind::kWrite : OpKind::kRead, whole(*mine), whole(*theirs));
      ASSERT_TRUE(transfer) << transfer.error().text();
      ASSERT_TRUE(transfer->post());
      for (int i = 0; i < round; ++i) transfer->poll();
      Pin& pin = at_target ? *theirs : *mine;
      const auto released = pin.release();
      ASSERT_TRUE(released) << released.error().text();
      fill(pin, 77);
      static_cast<void>(transfer->wait(60s));
      EXPECT_NE(transfer->end().state, TransferState::kRunning);
      EXPECT_TRUE(holds(pin, 77)) << at_target << round;
    }
}

// The later pin gets the address of the released pin, and with host memory also its slot.
TEST_P(BackendContract, ATransferReachesNoLaterPinOfTheSameMemory) {
  const Segment memory = plainAtB(sized(16 << 20));
  const auto mine = allocateAtA(memory.bytes);
  ASSERT_TRUE(mine);
  for (int round = 0; round < 5; ++round) {
    const std::string label = "r" + std::to_string(round);
    auto former = b_->pin(memory, label);
    ASSERT_TRUE(former) << former.error().text();
    waitForPin(*b_at_a_, label);
    auto transfer = plan(OpKind::kWrite, whole(*mine), whole(*former));
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    for (int i = 0; i < round; ++i) transfer->poll();
    const auto released = former->release();
    ASSERT_TRUE(released) << released.error().text();
    fill(*former, 77);
    const auto later = b_->pin(memory, label + " again");
    ASSERT_TRUE(later) << later.error().text();
    if (!onGpus()) {
      EXPECT_EQ(later->info().slot, former->info().slot);
    }
    static_cast<void>(transfer->wait(60s));
    EXPECT_NE(transfer->end().state, TransferState::kRunning);
    EXPECT_TRUE(holds(*later, 77)) << round;
  }
}

// Another thread posts meanwhile, and may be inside a copy.
TEST_P(BackendContract, ReleasingAPinDuringTheCopyOfAnotherThreadLeavesItsMemoryAlone) {
  for (const std::uint64_t bytes : {sized(4 << 20), sized(64 << 20)})
    for (const bool at_target : {true, false}) {
      const std::string label = std::to_string(bytes) + (at_target ? "w" : "r");
      auto mine = allocateAtA(bytes);
      auto theirs = allocateAtB(bytes, {.label = label});
      ASSERT_TRUE(mine && theirs);
      waitForPin(*b_at_a_, label);
      auto transfer =
          plan(at_target ? OpKind::kWrite : OpKind::kRead, whole(*mine), whole(*theirs));
      ASSERT_TRUE(transfer) << transfer.error().text();
      std::atomic<int> posts{0};
      std::jthread poster([&] {
        do {
          ++posts;
          posts.notify_all();
        } while (transfer->post() && transfer->wait(60s));
        ++posts;  // so that the other thread does not wait for ever if the first post fails
        posts.notify_all();
      });
      for (int seen = 0; seen < 2; seen = posts) posts.wait(seen);
      Pin& pin = at_target ? *theirs : *mine;
      const auto released = pin.release();
      EXPECT_TRUE(released) << released.error().text();
      fill(pin, 77);
      poster.join();
      EXPECT_NE(transfer->end().state, TransferState::kRunning);
      EXPECT_TRUE(holds(pin, 77)) << label;
    }
}

TEST_P(BackendContract, TheEventFdTellsOfNotesAndEnds) {
  const auto fd = b_->eventFd();
  ASSERT_TRUE(fd) << fd.error().text();
  ASSERT_TRUE(b_at_a_->note("wake up"));
  pollfd watched{.fd = *fd, .events = POLLIN, .revents = 0};
  std::optional<Note> note;
  for (int i = 0; i < 100 && !note; ++i) {
    ASSERT_EQ(::poll(&watched, 1, 5000), 1);
    b_->poll();
    note = b_->takeNote();
  }
  ASSERT_TRUE(note);
  EXPECT_EQ(note->text(), "wake up");
}

}  // namespace viaduct::testing
