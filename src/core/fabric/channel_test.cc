#include "core/fabric/channel.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <string>

#include "base/fd.h"

namespace viaduct::core::fabric {
namespace {

// Takes every piece at once. Its descriptor is like that of a verbs queue: what it has told stays
// told until arm(), also when progress() has seen it.
class StubbornConduit final : public Conduit {
 public:
  explicit StubbornConduit(int& told) { told = fd_.get(); }
  const Bytes& address() const override { return address_; }
  int fd() const override { return fd_.get(); }
  Status join(const Bytes&) override { return Ok{}; }
  const std::string& way() const override { return way_; }
  const std::string& lanes() const override { return way_; }
  RemoteKey keyOf(std::uint32_t, const Bytes&) override { return this; }
  void retire(std::uint32_t) override {}
  void sweep() override {}
  Posted post(OpKind, std::span<const Piece> pieces, RemoteKey) override {
    return {.pieces = static_cast<std::uint32_t>(pieces.size())};
  }
  Flush flush() override { return {}; }
  bool ended(Flush&) override { return true; }
  void letGo(Flush&) override {}
  bool progress() override { return false; }
  bool arm() override {
    eventfd_t count = 0;
    static_cast<void>(::eventfd_read(fd_.get(), &count));
    return true;
  }
  std::optional<Error> broken() const override { return std::nullopt; }

 private:
  const base::Fd fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  const Bytes address_;
  const std::string way_ = "way";
};

class StubbornGround final : public Ground {
 public:
  Result<std::unique_ptr<Conduit>> open() const override {
    return std::unique_ptr<Conduit>(std::make_unique<StubbornConduit>(told));
  }
  Result<std::unique_ptr<Registration>> add(std::uint64_t, std::uint64_t) const override {
    return std::make_unique<Registration>(Bytes());
  }
  mutable int told = -1;  // the conduit's descriptor
};

class ChannelTest : public ::testing::Test, public ChannelHost, public PosterHost {
 protected:
  void SetUp() override {
    auto opened = base::Poller::open();
    ASSERT_TRUE(opened);
    poller_ = *std::move(opened);
    word_.words = std::make_unique<ProbeWord::Words>();
    word_.registered = std::make_unique<Registration>(Bytes());
    channel_.emplace(ChannelSeed{.ground = ground_,
                                 .poller = *poller_,
                                 .word = word_,
                                 .opening = std::chrono::seconds(20),
                                 .spin = std::chrono::milliseconds(100),
                                 .poster = {.device = "stub", .own = own_, .remote = remote_}},
                     *this, *this);
    ASSERT_TRUE(channel_->begin(1, false));
    ASSERT_TRUE(channel_->join(Open{}));
  }
  void opened(Channel&) override {}
  void ask(const Ping&) override {}
  void activate(Channel& channel) override { channel.active = true; }
  void deactivate(Channel& channel) override { channel.active = false; }
  void askForKey(std::uint32_t) override {}

  // As a rail does it. True: the channel is asleep at last.
  bool turnsUntilAsleep() {
    const auto until = Clock::now() + std::chrono::seconds(5);
    while (channel_->active && Clock::now() < until) {
      look();
      const auto now = Clock::now();
      channel_->turn(now, now);
      channel_->active = !channel_->sleep(now);
    }
    return !channel_->active;
  }
  void look() {
    base::Poller::Events events;
    poller_->handle(events, poller_->block(events, Clock::now()), Clock::now());
  }

  std::unique_ptr<base::Poller> poller_;
  StubbornGround ground_;
  ProbeWord word_;
  OwnPins own_;
  RemotePins remote_;
  std::optional<Channel> channel_;
};

TEST_F(ChannelTest, WhatWasToldOnceKeepsNobodyAwake) {
  ASSERT_TRUE(turnsUntilAsleep());
  ASSERT_EQ(::eventfd_write(ground_.told, 1), 0);
  look();
  EXPECT_TRUE(channel_->active) << "it is woken";
  EXPECT_TRUE(turnsUntilAsleep()) << "and sleeps again";
}

}  // namespace
}  // namespace viaduct::core::fabric
