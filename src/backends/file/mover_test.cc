// The mover over an engine that hangs, as a disk that does not answer.
#include "backends/file/mover.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <mutex>

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
  std::mutex mutex;
  std::condition_variable news;
  bool open = false, woken = false;
  std::uint32_t started = 0, cancels = 0;
  void release() {
    const std::lock_guard lock(mutex);
    open = true;
    news.notify_all();
  }
  bool waitForStarted(std::uint32_t count) {
    std::unique_lock lock(mutex);
    return news.wait_for(lock, 30s, [&] { return started >= count; });
  }
};

class DammedEngine final : public Engine {
 public:
  explicit DammedEngine(std::shared_ptr<Dam> dam) : dam_(std::move(dam)) {}
  std::string_view name() const override { return "dammed"; }
  void start(std::uint32_t token, const Io& io) override {
    held_.push_back({token, static_cast<int>(io.bytes)});
    const std::lock_guard lock(dam_->mutex);
    ++dam_->started;
    dam_->news.notify_all();
  }
  void cancel(std::uint32_t) override {
    const std::lock_guard lock(dam_->mutex);
    ++dam_->cancels;
  }
  void wait(bool block, std::vector<Ended>& ended) override {
    std::unique_lock lock(dam_->mutex);
    if (block) dam_->news.wait(lock, [&] { return dam_->woken || (dam_->open && !held_.empty()); });
    dam_->woken = false;
    if (!dam_->open) return;
    ended.insert(ended.end(), held_.begin(), held_.end());
    held_.clear();
  }
  void wake() override {
    const std::lock_guard lock(dam_->mutex);
    dam_->woken = true;
    dam_->news.notify_all();
  }

 private:
  const std::shared_ptr<Dam> dam_;
  std::vector<Ended> held_;
};

class HangingDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_.path() + "/data") << std::string(kBytes, 'x');
    const auto segment = openFile(Segment::file(folder_.path() + "/data"), Toggle::kOff);
    ASSERT_TRUE(segment);
    ASSERT_TRUE(mover_->start());
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
    ASSERT_TRUE(dam_->waitForStarted(1));
  }
  // The mover compares links, and never calls them.
  const core::Link& closing() const { return *link(); }
  core::Link* link() const {
    return reinterpret_cast<core::Link*>(const_cast<int*>(&link_));  // NOLINT
  }
  template <class F>
  bool soon(F condition) {
    const auto until = Clock::now() + 30s;
    while (!condition())
      if (Clock::now() > until) return false;
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
  std::shared_ptr<Mover> mover_ = std::make_shared<Mover>(
      settings_, [dam = dam_](std::string_view, std::uint32_t, std::uint32_t, std::string&) {
        return std::make_unique<DammedEngine>(dam);
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
  mover_->poll(out_);
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
  ASSERT_TRUE(soon([&] { return mover_->hasEnded(); }));
  mover_->poll(out_);
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_EQ(std::get<core::Failed>(out_[0]).why.code, Code::kCancelled);
}

TEST_F(HangingDisk, StoppingLeavesTheThreadBehind) {
  post(7);
  mover_->stop();
  const std::weak_ptr<Mover> left = mover_;
  mover_.reset();
  EXPECT_FALSE(left.expired());
  dam_->release();
  EXPECT_TRUE(soon([&] { return left.expired(); }));
  mover_ = std::make_shared<Mover>(settings_);  // for TearDown()
}

TEST_F(HangingDisk, ACancelledPostThatEndsLaterComesBackOnce) {
  post(7);
  mover_->cancel(core::testing::sinkOf(7));
  ASSERT_TRUE(soon([&] {
    const std::lock_guard lock(dam_->mutex);
    return dam_->cancels == 1;
  }));
  EXPECT_FALSE(mover_->hasEnded());
  dam_->release();
  ASSERT_TRUE(soon([&] { return mover_->hasEnded(); }));
  mover_->poll(out_);
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_TRUE(mover_->unpin(0));
  EXPECT_TRUE(mover_->unpin(1));
}

TEST_F(HangingDisk, AFullTableOfJobsTakesNoMore) {
  dam_->release();
  std::uint64_t taken = 0;
  {
    Mover idle(settings_);  // never started
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

TEST(Mover, ReportsThatItsThreadDoesNotStart) {
  const auto mover = std::make_shared<Mover>(Settings{});
  {
    const testing::ThreadShortage shortage(0);
    const auto started = mover->start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::kExhausted) << started.error().text();
  }
  EXPECT_TRUE(mover->start());
  mover->stop();
}

}  // namespace
}  // namespace viaduct::file
