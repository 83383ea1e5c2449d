#include "core/fabric/channel.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace viaduct::core::fabric {
namespace {

// What a test sees of a conduit, and does to it.
struct Bell {
  bool unarmed = true;  // tells also while it is not armed
  int told = -1;        // the conduit's descriptor
  bool armed = false;
  int arms = 0;
};

// Takes every piece at once. Its descriptor is like that of a verbs queue: what it has told stays
// told until arm(), also when progress() has seen it.
class StubbornConduit final : public Conduit {
 public:
  explicit StubbornConduit(Bell& bell) : bell_(bell) { bell.told = fd_.get(); }
  const Bytes& address() const override { return address_; }
  int fd() const override { return fd_.get(); }
  bool tellsUnarmed() const override { return bell_.unarmed; }
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
    ++bell_.arms;
    return bell_.armed = true;
  }
  void disarm() override { bell_.armed = false; }
  std::optional<Error> broken() const override { return std::nullopt; }

 private:
  Bell& bell_;
  const base::Fd fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  const Bytes address_;
  const std::string way_ = "way";
};

class StubbornGround final : public Ground {
 public:
  Result<std::unique_ptr<Conduit>> open() const override {
    return std::unique_ptr<Conduit>(std::make_unique<StubbornConduit>(bell));
  }
  Result<std::unique_ptr<Registration>> add(std::uint64_t, std::uint64_t) const override {
    return std::make_unique<Registration>(Bytes());
  }
  mutable Bell bell;
};

constexpr Duration kSpin = std::chrono::milliseconds(20);

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
                                 .spin = kSpin,
                                 .poster = {.device = "stub", .own = own_, .remote = remote_}},
                     *this, *this);
    ASSERT_TRUE(channel_->begin(1, false));
    ASSERT_TRUE(channel_->join(Open{}));
  }
  void opened(Channel&) override {}
  void ask(const Ping&) override {}
  void activate(Channel& channel) override {
    channel.awake();
    channel.active = true;
  }
  void deactivate(Channel& channel) override { channel.active = false; }
  void askForKey(std::uint32_t) override {}

  // As a rail does it.
  void turn() {
    look();
    const auto now = Clock::now();
    channel_->turn(now, now);
    channel_->active = !channel_->sleep(now);
  }
  bool turnsUntil(const std::function<bool()>& done) {
    const auto until = Clock::now() + std::chrono::seconds(5);
    while (!done() && Clock::now() < until) turn();
    return done();
  }
  bool turnsUntilAsleep() {
    return turnsUntil([&] { return !channel_->active; });
  }
  // Something has come in. A bell that is not armed does not tell of it.
  void comesIn() {
    if (!ground_.bell.unarmed && !ground_.bell.armed) return;
    ASSERT_EQ(::eventfd_write(ground_.bell.told, 1), 0);
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
  comesIn();
  look();
  EXPECT_TRUE(channel_->active) << "it is woken";
  EXPECT_TRUE(turnsUntilAsleep()) << "and sleeps again";
}

// While traffic goes on, the bell is in nobody's way, and nobody falls asleep.
TEST_F(ChannelTest, WhatTellsOnlyWhenArmedIsListenedToBeforeItSleeps) {
  ground_.bell.unarmed = false;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(turnsUntil([&] { return ground_.bell.armed; }));
    ASSERT_TRUE(channel_->active) << "it is turned while it listens";
    comesIn();
    look();
    EXPECT_FALSE(ground_.bell.armed) << "it has heard it";
    EXPECT_TRUE(channel_->active);
  }
  const int heard = ground_.bell.arms;
  EXPECT_TRUE(turnsUntilAsleep());
  EXPECT_TRUE(ground_.bell.armed);
  EXPECT_EQ(ground_.bell.arms, heard + 2) << "to listen, and to sleep";
  comesIn();
  look();
  EXPECT_TRUE(channel_->active) << "it is woken";
  EXPECT_FALSE(ground_.bell.armed);
}

TEST_F(ChannelTest, WhileTrafficGoesOnItListensLessAndLessOften) {
  ground_.bell.unarmed = false;
  std::vector<Duration> deaf;
  auto heard = Clock::now();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(turnsUntil([&] { return ground_.bell.armed; }));
    deaf.push_back(Clock::now() - heard);
    comesIn();
    look();
    heard = Clock::now();
  }
  EXPECT_GE(deaf[2], 4 * kSpin);
  EXPECT_GE(deaf[4], 8 * kSpin);
  EXPECT_LT(deaf[4], 16 * kSpin) << "but not without end";
  ASSERT_TRUE(turnsUntilAsleep());
  comesIn();
  look();
  heard = Clock::now();
  ASSERT_TRUE(turnsUntil([&] { return ground_.bell.armed; }));
  EXPECT_LT(Clock::now() - heard, 8 * kSpin) << "who has slept begins anew";
}

}  // namespace
}  // namespace viaduct::core::fabric
