// Tests events that come while a thread posts or polls. A function of the test interrupts the
// thread inside the poll or copy.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent_impl.h"
#include "backends/fake/fake_rail.h"
#include "base/movable_clock.h"
#include "support/agent_of_a_clock.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;
using Outcome = core::DirectMover::Outcome;

constexpr std::uint64_t kBytes = 64 << 10;

// An agent that copies to itself over one fake rail, and whose clock the test moves.
class Posting : public ::testing::Test {
 protected:
  void open(const std::string& fake = "rails=1", std::chrono::microseconds spin = {}) {
    Settings settings{.name = "me", .backends = {"fake"}, .others = {{"VIADUCT_FAKE", fake}}};
    settings.detect = 8h;  // no heartbeat in the time that the test skips
    settings.spin = spin;
    impl_ = *AgentImpl::open(settings, &clock_);
    agent_.emplace(AgentOfAClock::of(impl_));
    self_.emplace(*agent_->self());
    ASSERT_TRUE(self_->ready(10s));
    for (const char* label : {"from", "into"})
      pins_.push_back(*agent_->allocate(kBytes, {.label = label}));
    ASSERT_TRUE(self_->waitPin("into", 10s));
  }
  void TearDown() override {
    interruptEachPoll({});
    moveBy({});
  }

  Transfer plan(TransferOptions options = {}) {
    const auto whole = [](const Pin& pin) {
      return Selection{*Blocks::strided({.base = pin.info().address, .bytes = kBytes, .count = 1}),
                       {}};
    };
    return *agent_->plan(OpKind::kWrite, *self_, whole(pins_[0]), whole(pins_[1]),
                         std::move(options));
  }
  static void interruptEachPoll(fake::Interruption interruption) {
    fake::interruption.with([&](auto& one) { one = std::move(interruption); });
  }
  // Interrupts the next poll of the calling thread, and no other. The poll moves something if
  // `moves`.
  static void interruptThisThreadOnce(const std::function<void()>& interruption,
                                      bool moves = true) {
    interruptEachPoll(
        [=, done = std::make_shared<bool>(false), thread = std::this_thread::get_id()] {
          if (std::this_thread::get_id() != thread || std::exchange(*done, true)) return true;
          interruption();
          return moves;
        });
  }
  // Posts so that the transfer still runs when post() returns.
  static void postAndLeaveRunning(Transfer& transfer, Deadline deadline) {
    interruptEachPoll([] { return false; });
    ASSERT_TRUE(transfer.post({.deadline = deadline}));
    ASSERT_EQ(transfer.state(), TransferState::kRunning);
  }
  static void moveBy(fake::DirectMove move) {
    fake::direct_move.with([&](auto& one) { one = std::move(move); });
  }
  // Call it in an interruption of a poll inside post(), when this thread has the lock. Another
  // thread runs `call` as soon as this thread releases the lock, and before it gets the lock again.
  void letRunNext(std::function<void()> call) {
    other_ = std::jthread(std::move(call));
    while (!impl_->engine().lock().isWanted()) std::this_thread::yield();
  }
  // Call it in an interruption of a poll without the lock. Another thread runs `call`, and has
  // taken the lock for `call` when letTakeTheLock() returns.
  void letTakeTheLock(std::function<void()> call) {
    other_ = std::jthread(std::move(call));
    while (impl_->engine().lock().try_lock()) {
      impl_->engine().lock().unlock();
      std::this_thread::yield();
    }
  }

  base::MovableClock clock_;
  std::shared_ptr<AgentImpl> impl_;
  std::optional<Agent> agent_;
  std::optional<Peer> self_;
  std::vector<Pin> pins_;
  std::jthread other_;
};

// Rails are polled without the lock. The deadline passes after a poll has moved the last op, and
// before a thread has taken note of it.
TEST_F(Posting, ATransferWhoseOpsHaveEndedIsNotOverdue) {
  open("rails=2");
  Transfer transfer = plan(), second = plan();
  postAndLeaveRunning(transfer, 10s);
  postAndLeaveRunning(second, 1h);
  interruptThisThreadOnce([&] {  // in the poll of the first rail
    interruptThisThreadOnce([&] {
      clock_.advance(20s);
      letTakeTheLock([&] { agent_->poll(); });
    });
  });
  agent_->poll();
  for (Transfer* one : {&transfer, &second}) {
    const Status ended = one->wait(20s);
    EXPECT_TRUE(ended) << ended.error().text();
  }
}

// Another thread runs the callback of a post as soon as it can, and the callback drops the handle.
// A build with ASan finds a post that uses the transfer after that.
TEST_F(Posting, ACallbackMayDropTheTransferInsideItsPost) {
  open();
  for (int round = 0; round < 50; ++round) {
    std::unique_ptr<Transfer> transfer;
    transfer = std::make_unique<Transfer>(plan({.on_end = [&](const TransferEnd& end) {
      EXPECT_EQ(end.state, TransferState::kDone);
      transfer.reset();
    }}));
    interruptThisThreadOnce([&] { letRunNext([&] { agent_->poll(); }); });
    EXPECT_TRUE(transfer->post());
    other_.join();
    while (agent_->poll()) {
    }
    EXPECT_EQ(transfer, nullptr);
  }
}

TEST_F(Posting, TheStatisticsTellHowManyWorksARailHasAndSinceWhen) {
  open();
  Transfer urgent = plan({.priority = Priority::kUrgent});
  Transfer background = plan({.priority = Priority::kBackground});
  postAndLeaveRunning(urgent, 1h);
  clock_.advance(2s);
  postAndLeaveRunning(background, 1h);
  clock_.advance(3s);
  const auto queues = agent_->statistics().rails.at(0).queues;
  EXPECT_EQ(queues[static_cast<std::size_t>(Priority::kUrgent)].works, 1U);
  EXPECT_EQ(queues[static_cast<std::size_t>(Priority::kNormal)].works, 0U);
  EXPECT_EQ(queues[static_cast<std::size_t>(Priority::kBackground)].works, 1U);
  const auto oldest = queues[static_cast<std::size_t>(Priority::kBackground)].oldest;
  EXPECT_GE(oldest, 3s);
  EXPECT_GE(queues[static_cast<std::size_t>(Priority::kUrgent)].oldest, oldest + 2s);
  interruptEachPoll({});
  EXPECT_TRUE(urgent.wait(20s));
  EXPECT_TRUE(background.wait(20s));
  const auto left = agent_->statistics().rails.at(0).queues;
  for (const RailQueue& queue : left) EXPECT_EQ(queue.works, 0U);
}

// Without giving way, a thread that waits for a busy rail would keep the lock for ten seconds.
TEST_F(Posting, AThreadThatSpinsGivesWay) {
  open("rails=1", 10s);
  Transfer waited = plan();
  interruptEachPoll([] { return false; });
  ASSERT_TRUE(waited.post());
  std::atomic<bool> waits{false};
  std::jthread waiter([&] {
    waits = true;
    EXPECT_TRUE(waited.wait(1h));
  });
  while (!waits) std::this_thread::yield();
  const auto begun = Clock::now();
  for (int round = 0; round < 100; ++round) EXPECT_EQ(agent_->statistics().done, 0U);
  EXPECT_LT(Clock::now() - begun, 5s);
  interruptEachPoll({});
}

// If the copy fails inside the post, the post has no effect, and other threads never see it run.
TEST_F(Posting, ACopyThatFailsInsideThePostLeavesTheStateAlone) {
  const Transfer* posted = nullptr;
  std::vector<TransferState> seen;
  Outcome outcome = Outcome::kMoved;
  moveBy([&](core::DirectMover::Progress& so_far, const std::atomic<bool>&) {
    seen.push_back(posted->state());
    so_far.bytes = kBytes;
    return outcome;
  });
  open();
  Transfer transfer = plan();
  posted = &transfer;
  ASSERT_TRUE(transfer.post());
  ASSERT_EQ(transfer.state(), TransferState::kDone);
  outcome = Outcome::kFailed;
  ASSERT_TRUE(transfer.post());  // the rail's queue takes it
  ASSERT_TRUE(transfer.wait(20s));
  EXPECT_EQ(seen, (std::vector{TransferState::kIdle, TransferState::kDone}));
  EXPECT_EQ(agent_->statistics().done, 2U);
}

TEST_F(Posting, AnExceptionInsideThePostLeavesATransferThatCanBePosted) {
  bool throws = true;
  moveBy([&](core::DirectMover::Progress& so_far, const std::atomic<bool>&) {
    if (throws) throw std::bad_alloc();
    so_far.bytes = kBytes;
    return Outcome::kMoved;
  });
  open();
  Transfer transfer = plan();
  EXPECT_THROW(static_cast<void>(transfer.post()), std::bad_alloc);
  EXPECT_EQ(transfer.state(), TransferState::kIdle);
  throws = false;
  const Status again = transfer.post();
  EXPECT_TRUE(again) << again.error().text();
  EXPECT_EQ(transfer.state(), TransferState::kDone);
}

// A long copy pauses for a thread that stops the rails, and goes on where it was.
TEST_F(Posting, ALongCopyLetsOtherCallsComeBetween) {
  std::atomic<int> calls{0};
  std::atomic<bool> second_over{false};
  std::uint64_t went_on_at = 0;
  // The progress thread may also ask for a pause, so each call waits for the second post.
  moveBy([&](core::DirectMover::Progress& so_far, const std::atomic<bool>& pause) {
    if (++calls > 1) went_on_at = so_far.next;
    calls.notify_all();
    while (!pause && !second_over) std::this_thread::yield();
    if (second_over && calls > 1) {
      so_far.bytes = kBytes;
      return Outcome::kMoved;
    }
    so_far.next = 7;
    return Outcome::kPaused;
  });
  open();
  Transfer transfer = plan();
  std::jthread poster([&] { EXPECT_TRUE(transfer.post()); });
  calls.wait(0);
  const Status second = transfer.post();
  second_over = true;
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().detail, "the transfer is still running");
  poster.join();
  EXPECT_EQ(went_on_at, 7U);
  EXPECT_EQ(transfer.state(), TransferState::kDone);
  EXPECT_EQ(agent_->statistics().rails.at(0).bytes, kBytes);
}

// A copy that pauses for each thread that stops the rails, and never ends. It counts its calls, and
// fails once `over` is set.
class EndlessCopy : public Posting {
 protected:
  void start() {
    moveBy([this](core::DirectMover::Progress& so_far, const std::atomic<bool>& pause) {
      so_far.bytes = moves_;
      ++calls_;
      calls_.notify_all();
      while (!pause && !over_) std::this_thread::yield();
      return over_ ? Outcome::kFailed : Outcome::kPaused;
    });
    open();
    transfer_.emplace(plan());
    poster_ = std::jthread([this] { posted_ = transfer_->post(options_); });
    calls_.wait(0);
  }
  // Lets the post end, and expects that the copy is not called again.
  void expectNoOtherCall() {
    const int calls = calls_;
    letItEnd();
    EXPECT_EQ(calls_, calls);
  }
  void letItEnd() {
    over_ = true;
    poster_.join();
  }

  void expectARefusal() {
    EXPECT_FALSE(posted_);
    EXPECT_NE(transfer_->state(), TransferState::kRunning);
  }

  // Expects that a post that has moved bytes was accepted, and then failed with this code.
  void expectAFailure(Code code) {
    EXPECT_TRUE(posted_) << "a post that has moved bytes was refused";
    const Status ended = transfer_->wait(20s);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, code) << ended.error().text();
    EXPECT_EQ(transfer_->state(), TransferState::kFailed);
    EXPECT_EQ(agent_->statistics().failed, 1U);
    EXPECT_TRUE(transfer_->path().shares.empty()) << transfer_->path().text();
  }

  PostOptions options_;
  std::uint64_t moves_ = 0;  // the bytes that each call has moved
  std::atomic<int> calls_{0};
  std::atomic<bool> over_{false};
  std::optional<Transfer> transfer_;
  Status posted_ = Ok{};
  std::jthread poster_;
};

// After release() the memory belongs to its owner, even if a copy was paused during release().
TEST_F(EndlessCopy, DoesNotGoOnAfterItsMemoryWasReleased) {
  start();
  ASSERT_TRUE(pins_[0].release());
  expectNoOtherCall();
  expectARefusal();
}

TEST_F(EndlessCopy, EndsWhenItsAgentCloses) {
  start();
  agent_->close();
  expectNoOtherCall();
  expectARefusal();
}

TEST_F(EndlessCopy, EndsAsFailedIfItHasMovedBytes) {
  moves_ = 1;
  start();
  ASSERT_TRUE(pins_[0].release());
  expectNoOtherCall();
  expectAFailure(Code::kDenied);
}

// The end of a stream does not stop a running copy, so the copy may be called once more.
TEST_F(EndlessCopy, EndsAsFailedWhenTheStreamOfItsMarkEnds) {
  moves_ = 1;
  options_.mark = Mark{.stream = 7, .number = 0};
  start();
  const auto stream = agent_->openMarks(*self_, {.number = 7, .marks = 1});
  ASSERT_TRUE(stream) << stream.error().text();
  stream->end({.code = Code::kCancelled, .operation = "stream", .detail = "not needed"});
  letItEnd();
  expectAFailure(Code::kCancelled);
  over_ = false;
  moveBy([](core::DirectMover::Progress& so_far, const std::atomic<bool>&) {
    so_far.bytes = kBytes;
    return Outcome::kMoved;
  });
  EXPECT_TRUE(transfer_->post()) << "the transfer cannot be posted again";
  EXPECT_EQ(transfer_->state(), TransferState::kDone);
}

}  // namespace
}  // namespace viaduct::agent
