// The mover over an engine that hangs, as a disk that does not answer.
#include "backends/file/file_mover.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "backends/file/facts.h"
#include "core/backend.h"
#include "core/sink_testing.h"
#include "support/shortage.h"
#include "support/temporary_folder.h"

namespace viaduct::file {
namespace {

using namespace std::chrono_literals;

// Nothing ends until release(), not even a cancelled I/O.
struct Dam {
  std::atomic<bool> open = false;
  std::uint32_t started = 0, cancels = 0;
  base::Fd doorbell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  void release() {
    open = true;
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(doorbell.get(), &one, sizeof one), 8);
  }
};

class DammedEngine final : public Engine {
 public:
  explicit DammedEngine(std::shared_ptr<Dam> dam) : dam_(std::move(dam)) {}
  std::string_view name() const override { return "dammed"; }
  std::vector<int> fds() const override { return {dam_->doorbell.get()}; }
  void start(std::uint32_t token, const Io& io) override {
    held_.push_back({token, static_cast<int>(io.bytes)});
    ++dam_->started;
  }
  void call(std::uint32_t token, std::function<int()> call) override {
    const int result = call();
    if (token != kNoToken) called_.push_back({token, result});
  }
  void cancel(std::uint32_t) override { ++dam_->cancels; }
  bool next(EndedIo& ended) override {
    auto& from = called_.empty() && dam_->open ? held_ : called_;
    if (from.empty()) return false;
    ended = from.back();
    from.pop_back();
    return true;
  }

 private:
  const std::shared_ptr<Dam> dam_;
  std::vector<EndedIo> held_, called_;
};

class HangingDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_.path() + "/data") << std::string(kBytes, 'x');
    const auto segment = openFile(Segment::file(folder_.path() + "/data"), Toggle::kOff);
    ASSERT_TRUE(segment);
    ASSERT_TRUE(mover_->prepare());
    EXPECT_EQ(mover_->start().size(), 1U);
    mover_->pin(0, {.address = reinterpret_cast<std::uintptr_t>(memory_.data()),
                    .bytes = kBytes,
                    .writable = true});
    mover_->pin(1, {.address = kFile,
                    .bytes = kBytes,
                    .file = std::static_pointer_cast<const OpenedFile>(segment->opened),
                    .writable = true});
  }
  void TearDown() override {
    dam_->release();
    mover_->stop();
  }
  void post(std::uint64_t number) {
    ASSERT_EQ(mover_->post({.kind = OpKind::kRead,
                            .slice = core::testing::sliceOf(number),
                            .link = link(),
                            .ops = ops_}),
              1U);
    ASSERT_TRUE(soon([&] { return dam_->started == 1; }));
  }
  // The mover compares links, and never calls them.
  const core::Link& closing() const { return *link(); }
  core::Link* link() const {
    return reinterpret_cast<core::Link*>(const_cast<int*>(&link_));  // NOLINT
  }
  template <class F>
  bool soon(F condition) {
    const auto until = Clock::now() + 30s;
    while (!condition()) {
      if (Clock::now() > until) return false;
      mover_->poll(out_);
    }
    return true;
  }

  static constexpr std::uint64_t kBytes = 64 << 10U, kFile = std::uint64_t{1} << 62U;
  testing::TemporaryFolder folder_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes);
  std::vector<core::Op> ops_ = {{.local = reinterpret_cast<std::uintptr_t>(memory_.data()),
                                 .remote = kFile,
                                 .bytes = kBytes,
                                 .local_pin = 0,
                                 .remote_pin = 1}};
  int link_ = 0;
  std::shared_ptr<Dam> dam_ = std::make_shared<Dam>();
  Settings settings_{.grace = 100ms};
  std::shared_ptr<FileMover> mover_ = std::make_shared<FileMover>(
      settings_, [dam = dam_](std::string_view, std::uint32_t, std::uint32_t) {
        return std::unique_ptr<Engine>(std::make_unique<DammedEngine>(dam));
      });
  core::Completions out_;
};

TEST_F(HangingDisk, ClosingALinkReturnsItsOpsAndSaysThatMemoryIsNotSettled) {
  post(7);
  mover_->close(closing(), out_);
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_EQ(std::get<core::Failed>(out_[0]).ops, 1U);
  const auto settled = mover_->settling();
  EXPECT_FALSE(settled());
  dam_->release();
  EXPECT_TRUE(soon(settled));
  EXPECT_EQ(out_.size(), 1U) << "an op comes back once";
}

TEST_F(HangingDisk, ReleasingAPinEndsWithinTheGrace) {
  post(7);
  mover_->cancel(core::testing::sinkOf(7));
  Status left = mover_->unpin(0);
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Code::kBusy);
  ASSERT_TRUE(soon([&] {
    left = mover_->unpin(0);
    return left || left.error().code != Code::kBusy;
  }));
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Code::kPeerLost);
  EXPECT_NE(left.error().text().find("does not answer"), std::string::npos);
  const auto settled = mover_->settling();
  EXPECT_FALSE(settled());
  dam_->release();
  EXPECT_TRUE(soon(settled));
  ASSERT_TRUE(soon([&] { return !out_.empty(); }));
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_EQ(std::get<core::Failed>(out_[0]).why.code, Code::kCancelled);
}

TEST_F(HangingDisk, StoppingLeavesAThreadBehindThatEndsWithTheDisk) {
  post(7);
  mover_->close(closing(), out_);
  const auto settled = mover_->settling();
  mover_->stop();
  const std::weak_ptr<FileMover> left = mover_;
  mover_ = std::make_shared<FileMover>(settings_);  // for TearDown()
  EXPECT_FALSE(left.expired());
  EXPECT_FALSE(settled());
  dam_->release();
  EXPECT_TRUE(soon([&] { return left.expired(); }));
  EXPECT_TRUE(settled());
}

TEST_F(HangingDisk, StoppingWithoutAThreadKeepsTheMover) {
  post(7);
  std::weak_ptr<FileMover> left = mover_;
  {
    const testing::ThreadShortage shortage(0);
    mover_->stop();
  }
  mover_ = std::make_shared<FileMover>(settings_);
  EXPECT_FALSE(left.expired());
}

TEST_F(HangingDisk, ACancelledPostThatEndsLaterComesBackOnce) {
  post(7);
  mover_->cancel(core::testing::sinkOf(7));
  EXPECT_EQ(dam_->cancels, 1U);
  mover_->poll(out_);
  EXPECT_TRUE(out_.empty());
  EXPECT_FALSE(mover_->busy()) << "an agent sleeps meanwhile";
  dam_->release();
  ASSERT_TRUE(soon([&] { return !out_.empty(); }));
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_TRUE(mover_->unpin(0));
  EXPECT_TRUE(mover_->unpin(1));
}

TEST_F(HangingDisk, AFullTableOfJobsTakesNoMore) {
  dam_->release();
  std::uint64_t taken = 0;
  {
    FileMover idle(settings_);  // never started
    EXPECT_EQ(idle.post({.link = link(), .ops = ops_}), 0U);
  }
  for (std::uint64_t number = 1; number <= 200; ++number)
    taken += mover_->post({.kind = OpKind::kRead,
                           .slice = core::testing::sliceOf(number),
                           .link = link(),
                           .ops = ops_});
  EXPECT_EQ(taken, 64U) << "none of them was polled";
  ASSERT_TRUE(soon([&] {
    mover_->poll(out_);
    return out_.size() == taken;
  }));
  for (const auto& one : out_) EXPECT_TRUE(std::holds_alternative<core::Moved>(one));
  EXPECT_EQ(
      mover_->post(
          {.kind = OpKind::kRead, .slice = core::testing::sliceOf(1), .link = link(), .ops = ops_}),
      1U);
}

}  // namespace
}  // namespace viaduct::file
