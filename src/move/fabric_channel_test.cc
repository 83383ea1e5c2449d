#include "move/fabric_channel.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace viaduct::move {
namespace {

// The descriptor of an endpoint, and its faults, as a test sets and reads them.
struct Bell {
  bool mute = false;    // the endpoint has no descriptor
  bool unarmed = true;  // reports events also while it is not armed
  bool silent = false;  // no flush ends
  bool full = false;    // accepts no piece
  int told = -1;        // the endpoint's descriptor
  bool armed = false;
  int arms = 0;
};

// Accepts every piece at once, unless it is full. Like the descriptor of a verbs queue, its
// descriptor stays readable until arm(), even after progress().
class StubbornEndpoint final : public Endpoint {
 public:
  explicit StubbornEndpoint(Bell& bell) : bell_(bell) { bell.told = fd_.get(); }
  const Bytes& address() const override { return address_; }
  int fd() const override { return bell_.mute ? -1 : fd_.get(); }
  bool tellsUnarmed() const override { return bell_.unarmed; }
  Status join(const Bytes&) override { return Ok{}; }
  const std::string& transport() const override { return transport_; }
  const std::string& transportDevices() const override { return transport_; }
  RemoteKey keyOf(std::uint32_t, const Bytes&) override { return this; }
  void retire(std::uint32_t) override {}
  void sweep() override {}
  Posted post(OpKind, std::span<const Piece> pieces, RemoteKey) override {
    return {.pieces = bell_.full ? 0 : static_cast<std::uint32_t>(pieces.size())};
  }
  Flush flush() override { return {}; }
  bool ended(Flush&) override { return !bell_.silent; }
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
  const std::string transport_ = "way";
};

class StubbornGround final : public Domain {
 public:
  Result<std::unique_ptr<Endpoint>> open() const override {
    return std::unique_ptr<Endpoint>(std::make_unique<StubbornEndpoint>(bell));
  }
  Result<std::unique_ptr<Registration>> add(const MemoryRange&) const override {
    return std::make_unique<Registration>(Bytes());
  }
  mutable Bell bell;
};

constexpr Duration kSpin = std::chrono::milliseconds(20);

class ChannelTest : public ::testing::Test, public ChannelHost, public ChannelMessages {
 protected:
  void SetUp() override {
    auto opened = base::Poller::open();
    ASSERT_TRUE(opened);
    poller_ = *std::move(opened);
    word_.words = std::make_unique<ProbeWord::Pair>();
    word_.registered = std::make_unique<Registration>(Bytes());
    const auto address = reinterpret_cast<std::uintptr_t>(word_.words.get());
    std::vector<std::unique_ptr<Registration>> mine;
    mine.push_back(std::make_unique<Registration>(Bytes()));
    own_.add(0, {{.address = address, .bytes = 8}, std::move(mine)});
    remote_.add(0, {.generation = 1,
                    .address = address,
                    .bytes = 8,
                    .state = PeerPin::KeyState::kHere,
                    .keys = {Bytes()}});
    op_ = {.local = address, .remote = address, .bytes = 8};
    channel_.emplace(FabricChannelSeed{.domain = domain_,
                                       .poller = *poller_,
                                       .word = word_,
                                       .opening = std::chrono::seconds(20),
                                       .spin = kSpin,
                                       .poster = {.device = "stub",
                                                  .poller = *poller_,
                                                  .own = own_,
                                                  .remote = remote_,
                                                  .scratch = scratch_}},
                     *this, *this, ChannelLife(1, {}));
    live();
  }
  void live() {
    ASSERT_TRUE(channel_->life().on(ChannelEvent::kOpen));
    ASSERT_TRUE(channel_->begin(false));
    ASSERT_TRUE(channel_->join(OpenChannel{}));
  }
  // Closes the channel at both ends.
  void end() {
    ASSERT_TRUE(channel_->life().on(ChannelEvent::kClose));
    channel_->close();
    ASSERT_TRUE(channel_->life().on(ChannelEvent::kPeerClosed));
    channel_->settle();
  }
  bool broken() const { return channel_->life().broken(); }
  void opened(Channel&) override {}
  void broke(Channel&) override {}
  void tell(const FabricMessage& message) override { told_.push_back(message); }
  void activate(Channel& channel) override {
    channel.awake();
    channel.active = true;
  }
  void deactivate(Channel& channel) override { channel.active = false; }
  void askForKey(std::uint32_t slot) override { keys_.push_back(slot); }

  // Polls the channel as a rail does.
  void progress() {
    look();
    const auto now = Clock::now();
    channel_->progress(now, {.until = now, .pause = pause_});
    channel_->active = !channel_->sleep(now);
    if (channel_->hasEvents()) channel_->handleEvents();
  }
  bool turnsUntil(const std::function<bool()>& done) {
    const auto until = Clock::now() + std::chrono::seconds(5);
    while (!done() && Clock::now() < until) progress();
    return done();
  }
  bool turnsUntilAsleep() {
    return turnsUntil([&] { return !channel_->active; });
  }
  // Lets data arrive. An endpoint that reports events only while armed may not report it.
  void comesIn() {
    if (!domain_.bell.unarmed && !domain_.bell.armed) return;
    ASSERT_EQ(::eventfd_write(domain_.bell.told, 1), 0);
  }
  void look() {
    base::Poller::Events events;
    poller_->handle(events, poller_->block(events, Clock::now()), Clock::now());
  }

  // Posts eight bytes, which the endpoint accepts at once.
  void post() {
    job_ = &jobs_.add({.ops = std::span(&op_, 1)}, &*channel_);
    channel_->add(*job_);
    if (channel_->hasEvents()) channel_->handleEvents();
    ASSERT_TRUE(job_->allPosted());
  }
  // The number of pings to the peer in this life.
  int asked() const {
    return static_cast<int>(
        std::count_if(told_.begin(), told_.end(), [&](const FabricMessage& one) {
          const auto* const ping = std::get_if<PingChannel>(&one);
          return ping != nullptr && !ping->answer && ping->life == channel_->life().number();
        }));
  }
  // Posts data that is never confirmed, until the peer is pinged.
  void fallSilent() {
    ASSERT_TRUE(turnsUntil([&] { return channel_->up(); }));
    domain_.bell.silent = true;
    post();
    ASSERT_TRUE(turnsUntil([&] { return asked() == 1 || broken(); }));
    ASSERT_FALSE(broken()) << "the peer has not said that it is well";
  }
  // The number of PollingNotice messages to the peer with this value.
  int toldThat(bool awake) const {
    return static_cast<int>(
        std::count_if(told_.begin(), told_.end(), [&](const FabricMessage& one) {
          const auto* const polling = std::get_if<PollingNotice>(&one);
          return polling != nullptr && polling->awake == awake;
        }));
  }

  std::vector<FabricMessage> told_;
  std::vector<std::uint32_t> keys_;  // requested from the peer
  std::atomic<bool> pause_{false};
  std::unique_ptr<base::Poller> poller_;
  StubbornGround domain_;
  ProbeWord word_;
  OwnPins own_;
  PeerPins remote_;
  std::vector<Piece> scratch_ = std::vector<Piece>(Poster::kBatchPieces);
  core::Op op_;
  JobTable jobs_;
  Job* job_ = nullptr;
  std::optional<FabricChannel> channel_;
};

// A channel whose endpoint has no descriptor.
class MuteChannelTest : public ChannelTest {
 protected:
  MuteChannelTest() { domain_.bell.mute = true; }
  bool turnsUntilItDozes() {
    return turnsUntil([&] { return channel_->dozes(); });
  }
};

TEST_F(ChannelTest, SleepsAgainAlthoughTheDescriptorStaysReadable) {
  ASSERT_TRUE(turnsUntilAsleep());
  comesIn();
  look();
  EXPECT_TRUE(channel_->active) << "it is woken";
  EXPECT_TRUE(turnsUntilAsleep()) << "and sleeps again";
}

// Libraries lose events. So a peer that waits for an answer sends a ping over the session, which
// wakes the channel.
TEST_F(ChannelTest, APingOfThePeerWakesAChannelThatSleeps) {
  ASSERT_TRUE(turnsUntilAsleep());
  channel_->pinged();
  EXPECT_TRUE(channel_->active);
  EXPECT_TRUE(turnsUntilAsleep());
}

// A poll may run beside polls of other rails, and the link belongs to all rails.
TEST_F(ChannelTest, APollLeavesAProvenPathAsAnEvent) {
  channel_->progress(poller_->now(), {.until = poller_->now(), .pause = pause_});
  EXPECT_TRUE(channel_->hasEvents());
  EXPECT_FALSE(channel_->up());
  channel_->handleEvents();
  EXPECT_FALSE(channel_->hasEvents());
  EXPECT_TRUE(channel_->up());
}

TEST_F(ChannelTest, APollLeavesTheRequestForAKeyAsAnEvent) {
  ASSERT_TRUE(turnsUntil([&] { return channel_->up(); }));
  remote_.add(1, {.generation = 2, .address = op_.remote, .bytes = 8});
  domain_.bell.full = true;
  std::vector<core::Op> ops(2, op_);
  ops[1].remote_pin = 1;
  job_ = &jobs_.add({.ops = ops}, &*channel_);
  channel_->add(*job_);
  domain_.bell.full = false;
  channel_->progress(poller_->now(), {.until = poller_->now(), .pause = pause_});
  EXPECT_EQ(job_->next_op, 1U);
  EXPECT_TRUE(channel_->hasEvents());
  EXPECT_TRUE(keys_.empty());
  channel_->handleEvents();
  EXPECT_FALSE(channel_->hasEvents());
  EXPECT_EQ(keys_, std::vector<std::uint32_t>{1});
}

// During traffic the endpoint is rarely armed, and the channel stays awake.
TEST_F(ChannelTest, IsArmedForASpinBeforeItSleeps) {
  domain_.bell.unarmed = false;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(turnsUntil([&] { return domain_.bell.armed; }));
    ASSERT_TRUE(channel_->active) << "it makes progress while it is armed";
    comesIn();
    look();
    EXPECT_FALSE(domain_.bell.armed) << "it has heard it";
    EXPECT_TRUE(channel_->active);
  }
  const int heard = domain_.bell.arms;
  EXPECT_TRUE(turnsUntilAsleep());
  EXPECT_TRUE(domain_.bell.armed);
  EXPECT_EQ(domain_.bell.arms, heard + 2) << "to listen, and to sleep";
  comesIn();
  look();
  EXPECT_TRUE(channel_->active) << "it is woken";
  EXPECT_FALSE(domain_.bell.armed);
}

TEST_F(ChannelTest, IsArmedLessOftenDuringTraffic) {
  domain_.bell.unarmed = false;
  std::vector<Duration> deaf;
  auto heard = Clock::now();
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(turnsUntil([&] { return domain_.bell.armed; }));
    deaf.push_back(Clock::now() - heard);
    comesIn();
    look();
    heard = Clock::now();
  }
  EXPECT_GE(deaf[2], 4 * kSpin);
  EXPECT_GE(deaf[4], 8 * kSpin);
  EXPECT_LT(deaf[7], 64 * kSpin) << "but not without end";
  // A busy machine may hold up one try.
  auto shortest = Duration::max();
  for (int i = 0; i < 5 && shortest >= 8 * kSpin; ++i) {
    ASSERT_TRUE(turnsUntilAsleep());
    comesIn();
    look();
    heard = Clock::now();
    ASSERT_TRUE(turnsUntil([&] { return domain_.bell.armed; }));
    shortest = std::min<Duration>(shortest, Clock::now() - heard);
  }
  EXPECT_LT(shortest, 8 * kSpin) << "who has slept begins anew";
}

// Without a descriptor the peer would notice data only at its next poll, so it is told to poll.
TEST_F(MuteChannelTest, APostTellsThePeerToPollAndLaterToStop) {
  ASSERT_TRUE(turnsUntilItDozes());
  EXPECT_EQ(toldThat(true), 0) << "nothing was posted";
  for (int times = 1; times <= 2; ++times) {
    post();
    EXPECT_EQ(toldThat(true), times);
    post();
    EXPECT_EQ(toldThat(true), times) << "once is enough";
    ASSERT_TRUE(turnsUntilItDozes());
    EXPECT_EQ(toldThat(false), times);
  }
}

TEST_F(MuteChannelTest, DoesNotDozeWhileThePeerPolls) {
  ASSERT_TRUE(turnsUntilItDozes());
  channel_->peerPolling(true);
  EXPECT_FALSE(channel_->dozes());
  for (const auto until = Clock::now() + 3 * kSpin; Clock::now() < until; progress())
    ASSERT_FALSE(channel_->dozes());
  post();
  EXPECT_TRUE(turnsUntil([&] { return toldThat(false) == 1; })) << "or each waits for the other";
  EXPECT_FALSE(channel_->dozes());
  channel_->peerPolling(false);
  EXPECT_TRUE(turnsUntilItDozes());
}

// Pings and their answers belong to one life.
TEST_F(ChannelTest, PingsASilentPeerInEachLife) {
  ASSERT_NO_FATAL_FAILURE(fallSilent());
  end();  // the peer has not answered the ping
  domain_.bell.silent = false;
  live();
  ASSERT_NO_FATAL_FAILURE(fallSilent());
  for (int answers = 0; answers < 2; ++answers) {
    ASSERT_TRUE(turnsUntil([&] { return asked() == answers + 1; }));
    EXPECT_FALSE(broken());
    channel_->answered();
  }
  EXPECT_TRUE(turnsUntil([&] { return !!broken(); }));
  end();
  domain_.bell.silent = false;
  live();
  ASSERT_NO_FATAL_FAILURE(fallSilent());
}

// While the peer does not answer, the session is silent too, and no rail is to blame for that time.
TEST_F(ChannelTest, ALateAnswerGivesTheRailMoreTime) {
  using namespace std::chrono_literals;
  ASSERT_NO_FATAL_FAILURE(fallSilent());
  const auto asked_at = Clock::now();
  ASSERT_TRUE(turnsUntil([&] { return Clock::now() > asked_at + 300ms; }));
  channel_->answered();
  ASSERT_TRUE(turnsUntil([&] { return asked() == 2 || broken(); }));
  EXPECT_FALSE(broken());
  EXPECT_GT(Clock::now() - asked_at, 600ms) << "three times 300 ms, less what the first ping took";
}

// Some libraries lose an event of their descriptor.
TEST_F(ChannelTest, MakesProgressOnceMoreBeforeItCountsAsSilent) {
  ASSERT_TRUE(turnsUntil([&] { return channel_->up(); }));
  domain_.bell.silent = true;
  post();
  ASSERT_TRUE(turnsUntilAsleep());
  domain_.bell.silent = false;  // the descriptor does not report it
  const auto until = Clock::now() + std::chrono::seconds(5);
  for (int answered = 0; !job_->ended && !broken() && Clock::now() < until;) {
    channel_->active ? progress() : look();
    for (; answered < asked(); ++answered) channel_->answered();
  }
  EXPECT_TRUE(job_->ended);
  EXPECT_FALSE(broken());
}

TEST_F(MuteChannelTest, ALateNoticeAboutAnEndedLifeIsIgnored) {
  ASSERT_TRUE(turnsUntilItDozes());
  end();
  channel_->peerPolling(true);
  live();
  EXPECT_TRUE(turnsUntilItDozes());
}

TEST_F(ChannelTest, WithADescriptorThePeerIsNotToldToPoll) {
  ASSERT_TRUE(turnsUntilAsleep());
  post();
  channel_->peerPolling(true);
  EXPECT_TRUE(turnsUntilAsleep());
  EXPECT_EQ(toldThat(true) + toldThat(false), 0);
}

}  // namespace
}  // namespace viaduct::move
