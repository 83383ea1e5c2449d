// An agent whose disk stops answering: the promises of docs/failure.md, over a real file system.
#include <memory>
#include <string>
#include <utility>

#include "backends/file/file_testing.h"
#include "backends/file/hung_disk_testing.h"
#include "base/movable_clock.h"
#include "support/agent_of_a_clock.h"

namespace viaduct::testing {
namespace {

class FileHang : public FileTest, public ::testing::WithParamInterface<std::string> {
 protected:
  static constexpr Duration kDeadline = 60s, kGrace = 400ms;
  static constexpr std::uint64_t kBytes = HungDisk::kFileBytes;

  void SetUp() override {
    disk_ = std::make_unique<HungDisk>(path("disk"));
    if (!disk_->mounted()) GTEST_SKIP() << "skipped: no right to mount FUSE";
    Settings with = settings(GetParam());
    with.grace = std::chrono::duration_cast<std::chrono::milliseconds>(kGrace);
    auto agent = agent::AgentOfAClock::open(with, clock_);
    ASSERT_TRUE(agent) << agent.error().text();
    agent_.emplace(*std::move(agent));
    connect();
    file_.emplace(pinned(Segment::file(disk_->file())));
    memory_.emplace(allocated(kBytes));
  }
  // Ends the hanging calls first, and the agent before its clock.
  void TearDown() override {
    disk_->release();
    file_.reset();
    memory_.reset();
    self_.reset();
    agent_.reset();
  }

  bool holdsTheFile() const {
    const auto bytes = memory_->bytes();
    return std::ranges::all_of(bytes,
                               [](std::byte one) { return one == std::byte{HungDisk::kByte}; });
  }
  // Posts a read of the whole file, which hangs.
  Transfer posted() {
    disk_->hang();
    auto transfer =
        agent_->plan(OpKind::kRead, *self_, part(*memory_, 0, kBytes), part(*file_, 0, kBytes));
    EXPECT_TRUE(transfer) << transfer.error().text();
    EXPECT_TRUE(transfer->post({.deadline = kDeadline}));
    EXPECT_TRUE(disk_->waitForHung());
    return *std::move(transfer);
  }
  void expectTimeoutWithinTheGrace(Transfer& transfer) {
    EXPECT_EQ(transfer.state(), TransferState::kRunning);
    for (const Duration next : {kDeadline, kGrace}) {
      EXPECT_EQ(transfer.state(), TransferState::kRunning);
      clock_.advance(next);
      agent_->poll();
    }
    const Status ended = transfer.wait(30s);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::kTimeout) << ended.error().text();
    EXPECT_FALSE(self_->settled()) << "the kernel still has the read";
  }
  // Lets the disk answer, and waits until the memory is settled. Then fills it with a pattern,
  // which nobody may change: expectRecovered() checks that.
  void expectMemoryAtRest() {
    disk_->release();
    const auto until = Clock::now() + 30s;
    while (!self_->settled() && Clock::now() < until) agent_->poll();
    ASSERT_TRUE(self_->settled());
    fillWith(memory_->bytes(), std::byte{7});
  }
  // The agent works again, with new links to itself.
  void expectRecovered() {
    ASSERT_TRUE(self_->ready(30s));
    for (int pin = 1; pin <= pins_; ++pin)
      ASSERT_TRUE(self_->waitPin("pin" + std::to_string(pin), 30s));
    EXPECT_TRUE(
        std::ranges::all_of(memory_->bytes(), [](std::byte one) { return one == std::byte{7}; }));
    const Status again = read(*file_, 0, *memory_, 0, kBytes);
    EXPECT_TRUE(again) << again.error().text();
    EXPECT_TRUE(holdsTheFile());
  }

  base::MovableClock clock_;
  std::unique_ptr<HungDisk> disk_;
  std::optional<Pin> file_, memory_;
};

TEST_P(FileHang, ATransferEndsByItsDeadlineAndSettlesWithTheDisk) {
  ASSERT_TRUE(read(*file_, 0, *memory_, 0, kBytes)) << "the file is open from here on";
  ASSERT_TRUE(holdsTheFile());
  Transfer transfer = posted();
  expectTimeoutWithinTheGrace(transfer);
  expectMemoryAtRest();
  expectRecovered();
}

// The first use of a file opens it.
TEST_P(FileHang, ATransferEndsByItsDeadlineIfTheFileCannotBeOpened) {
  Transfer transfer = posted();
  expectTimeoutWithinTheGrace(transfer);
  expectMemoryAtRest();
  expectRecovered();
}

TEST_P(FileHang, OtherFilesGoOn) {
  const auto content = make("other", kBytes);
  const Pin other = pinned(Segment::file(path("other")));
  const Pin memory = allocated(kBytes);
  for (const bool opened : {false, true}) {
    Transfer transfer = posted();
    for (int i = 0; i < 3; ++i) {
      const Status moved = read(other, 0, memory, 0, kBytes);
      ASSERT_TRUE(moved) << moved.error().text() << opened;
    }
    EXPECT_TRUE(same(memory.bytes(), content));
    EXPECT_EQ(transfer.state(), TransferState::kRunning) << opened;
    disk_->release();
    EXPECT_TRUE(transfer.wait(30s));
  }
}

// If io_uring runs work on kernel threads, the kernel cancels or awaits it when the thread that
// submitted it ends.
TEST_P(FileHang, TheThreadThatPostedEnds) {
  ASSERT_TRUE(read(*file_, 0, *memory_, 0, kBytes));
  std::optional<Transfer> transfer;
  std::thread([&] { transfer.emplace(posted()); }).join();
  EXPECT_EQ(transfer->state(), TransferState::kRunning);
  disk_->release();
  const Status moved = transfer->wait(30s);
  EXPECT_TRUE(moved) << moved.error().text();
  EXPECT_TRUE(holdsTheFile());
}

TEST_P(FileHang, AnAgentClosesNevertheless) {
  ASSERT_TRUE(read(*file_, 0, *memory_, 0, kBytes));
  const Transfer transfer = posted();
  std::thread time([&] { clock_.advance(kGrace); });
  agent_->close();
  time.join();
  EXPECT_NE(transfer.state(), TransferState::kRunning);
  const Status left = memory_->release();
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Code::kPeerLost) << "the kernel still has the read";
}

INSTANTIATE_TEST_SUITE_P(Engines, FileHang, ::testing::Values("auto", "threads"),
                         [](const auto& engine) { return engine.param; });

}  // namespace
}  // namespace viaduct::testing
