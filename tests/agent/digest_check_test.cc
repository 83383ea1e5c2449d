// The end of a checked read while its blocks are being checked: by cancel, its deadline, the
// release of its memory and the close of its agent.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <viaduct/viaduct.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "base/movable_clock.h"
#include "support/agent_of_a_clock.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

// Each part of a check digests about a megabyte, so a check of this memory has many parts.
constexpr std::uint64_t kBytes = 16 << 20;

// A callback keeps the progress thread of the reader busy. So a check goes on only while the thread
// of the test polls: in each poll it does one part.
class RunningCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto* agent : {&reader_, &owner_}) {
      Settings settings{.backends = {"fake"},
                        .detect = 8h,
                        .deadline = 8h,
                        .others = {{"VIADUCT_FAKE", "rails=1"}}};
      settings.name = agent == &reader_ ? "reader" : "owner";
      auto opened = agent::AgentOfAClock::open(settings, clock_);
      ASSERT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    there_.emplace(*owner_->allocate(kBytes, {.label = "there"}));
    void* const mapped =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    memory_ = static_cast<std::byte*>(mapped);
    here_.emplace(*reader_->pin(Segment::host(memory_, kBytes)));
    at_reader_ = *reader_->importCard(owner_->exportCard());
    ASSERT_TRUE(at_reader_->ready(20s) && at_reader_->waitPin("there", 20s));
    holdProgressThread();
    begin();
  }
  void TearDown() override {
    let_go_ = true;
    reader_.reset();
    if (memory_ != nullptr) ::munmap(memory_, kBytes);
  }

  static Selection whole(const Pin& pin) {
    return {*Blocks::strided({.base = pin.info().address, .bytes = kBytes, .count = 1}), {}};
  }

  void holdProgressThread() {
    const auto until_let_go = [this](const TransferEnd&) {
      held_ = true;
      held_.notify_all();
      while (!let_go_ && reader_->digestBlocks({})) std::this_thread::yield();
      if (let_go_) return;
      // The agent closes and joins this thread. The wait here makes progress, but may not end the
      // check.
      const auto waited = transfer_->wait(1ms);
      EXPECT_TRUE(!waited && waited.error().code == Code::kTimeout) << "the check ended early";
    };
    auto planned = reader_->plan(OpKind::kRead, *at_reader_, whole(*here_), whole(*there_),
                                 {.on_end = until_let_go});
    ASSERT_TRUE(planned) << planned.error().text();
    holding_.emplace(*std::move(planned));
    ASSERT_TRUE(holding_->post());
    held_.wait(false);
  }

  // Reads until all bytes are here, and a part of them is checked.
  void begin() {
    const auto count = [this](const TransferEnd&) { ++told_; };
    auto planned =
        reader_->plan(OpKind::kRead, *at_reader_, whole(*here_), whole(*there_), {.on_end = count});
    ASSERT_TRUE(planned) << planned.error().text();
    transfer_.emplace(*std::move(planned));
    const std::vector<Digest> wrong(1);
    ASSERT_TRUE(transfer_->post({.deadline = 1h, .with_note = true, .digests = wrong}));
    const auto moved = [this] {
      const Path path = transfer_->path();
      return !path.shares.empty() && path.shares.front().bytes == kBytes;
    };
    while (!moved()) reader_->poll();
    ASSERT_EQ(transfer_->state(), TransferState::kRunning);
  }

  // Expects that the transfer ended before its check, so no block is known to be corrupt.
  void expectEnd(TransferState state, Code code) {
    const TransferEnd end = transfer_->end();
    EXPECT_EQ(end.state, state);
    EXPECT_TRUE(end.corrupt.empty());
    ASSERT_TRUE(end.error);
    EXPECT_EQ(end.error->code, code) << end.error->text();
    EXPECT_EQ(told_, 1);
    EXPECT_FALSE(owner_->waitNote(0s));
  }
  // Polls twice: once for the part of the check that was owed, and once for the callback.
  void pollTwice() {
    reader_->poll();
    reader_->poll();
  }

  base::MovableClock clock_;
  std::optional<Agent> reader_, owner_;
  std::byte* memory_ = nullptr;
  std::optional<Pin> there_, here_;
  std::optional<Peer> at_reader_;
  std::atomic<bool> held_ = false, let_go_ = false;
  std::atomic<int> told_ = 0;
  std::optional<Transfer> holding_, transfer_;
};

TEST_F(RunningCheck, EndsInTime) {
  for (int i = 0; transfer_->state() == TransferState::kRunning; ++i) {
    ASSERT_LE(i, 20);
    reader_->poll();
  }
  reader_->poll();
  const TransferEnd end = transfer_->end();
  EXPECT_EQ(end.state, TransferState::kFailed);
  EXPECT_EQ(end.error->code, Code::kCorrupt);
  EXPECT_EQ(end.corrupt, Indices{0});
  EXPECT_EQ(told_, 1);
}

TEST_F(RunningCheck, EndsWithItsTransfersCancel) {
  transfer_->cancel();
  pollTwice();
  expectEnd(TransferState::kCancelled, Code::kCancelled);
}

TEST_F(RunningCheck, EndsAtItsTransfersDeadline) {
  clock_.advance(1h);
  pollTwice();
  expectEnd(TransferState::kFailed, Code::kTimeout);
}

TEST_F(RunningCheck, EndsBeforeItsMemoryIsReleased) {
  const auto released = here_->release();
  ASSERT_TRUE(released) << released.error().text();
  ASSERT_EQ(::munmap(memory_, kBytes), 0);
  memory_ = nullptr;
  EXPECT_NE(transfer_->state(), TransferState::kRunning);
  pollTwice();  // a check that goes on would read unmapped memory and crash
  expectEnd(TransferState::kFailed, Code::kDenied);
}

// Another thread checks the blocks, so a part may be in progress during the release.
TEST_F(RunningCheck, LeavesTheMemoryBeforeItIsReleased) {
  std::atomic<int> polls = 0;
  std::jthread checks([&](const std::stop_token& over) {
    for (; !over.stop_requested(); ++polls) reader_->poll();
  });
  while (polls == 0) std::this_thread::yield();
  const auto released = here_->release();
  ASSERT_EQ(::munmap(memory_, kBytes), 0);
  memory_ = nullptr;
  ASSERT_TRUE(released) << released.error().text();
  EXPECT_EQ(transfer_->state(), TransferState::kFailed);
}

TEST_F(RunningCheck, EndsWithItsAgent) {
  reader_->close();
  expectEnd(TransferState::kFailed, Code::kPeerLost);  // closing fails running transfers
}

}  // namespace
}  // namespace viaduct
