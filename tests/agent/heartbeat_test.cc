// Heartbeats between agents of one host are counted in the rings for notes. The test plays the
// other end. docs/design/0019-heartbeats-in-shared-memory.md.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "agent/session/note_ring.h"
#include "agent/session/session_pair_testing.h"
#include "base/net/dialer.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

class Heartbeats : public ::testing::Test {
 protected:
  void SetUp() override {
    Settings settings;
    settings.name = "a";
    settings.secret = "secret";
    settings.backends = {"tcp"};
    settings.detect = 1s;
    auto opened = Agent::open(settings);
    ASSERT_TRUE(opened) << opened.error().text();
    agent_.emplace(*std::move(opened));
    dial();
    ASSERT_TRUE(manual_.run([&] { return user_.fds.size() == 2; })) << "no ring was offered";
    auto out = RingSender::map(user_.fds[0], std::move(user_.fds[1]));
    ASSERT_TRUE(out) << out.error().text();
    out_.emplace(*std::move(out));
    ASSERT_TRUE(connection_->send(FrameType::kSynced, {}));
    ASSERT_TRUE(agent_->peer("b")->ready(20s));
  }
  void dial() {
    Hello mine = helloOf("b");
    mine.backends.clear();
    const auto dialer = base::Dialer::start(
        {"unix:@" + agent_->card().unix_name}, Clock::now() + 20s, manual_.poller(),
        [&](Result<base::Fd> socket, const std::string&) {
          ASSERT_TRUE(socket) << socket.error().text();
          connection_ = std::move(*Connection::open(*std::move(socket), Connection::Role::kDialer,
                                                    configOf(mine), manual_.poller(), user_));
        });
    ASSERT_TRUE(manual_.run([&] { return user_.epoch.has_value(); }));
  }
  // Offers the agent a ring. Without `reads_beats` it is like the ring of an older release, in
  // which heartbeats are not read.
  void offerRing(bool reads_beats = true) {
    const base::SharedMemory page =
        *base::SharedMemory::map(base::Fd(::fcntl(in_.fds()[0], F_DUPFD_CLOEXEC, 0)),
                                 sizeof(RingPage), base::SharedMemory::Access::kReadWrite);
    reinterpret_cast<RingPage*>(page.data())->reads_beats = reads_beats ? 1 : 0;
    ASSERT_TRUE(
        connection_->send(FrameType::kNoteRing, base::Writer().put(kRingLayout).take(), in_.fds()));
  }
  // Sends heartbeats until `until()` is true.
  template <class F>
  bool beatUntil(F until) {
    return manual_.run([&] {
      last_beat_ = Clock::now();
      out_->beat();
      return until();
    });
  }
  std::ptrdiff_t framesOfHeartbeats() const {
    return std::count(user_.types.begin(), user_.types.end(), FrameType::kHeartbeat);
  }

  base::ManualPoller manual_;
  std::optional<Agent> agent_;
  Recorder user_;
  RingReceiver in_ = *RingReceiver::make();
  std::optional<RingSender> out_;
  std::unique_ptr<Connection> connection_;
  Clock::time_point last_beat_{};
};

TEST_F(Heartbeats, NoFrameIsSentToAPeerThatReadsTheRing) {
  offerRing();
  ASSERT_TRUE(beatUntil([&] { return in_.hasBeaten(); }));
  const auto before = framesOfHeartbeats();
  int beats = 0;
  ASSERT_TRUE(beatUntil([&] { return (beats += in_.hasBeaten() ? 1 : 0) == 8; }));
  EXPECT_EQ(framesOfHeartbeats(), before);
}

TEST_F(Heartbeats, APeerThatDoesNotReadTheRingGetsFrames) {
  offerRing(false);
  EXPECT_TRUE(beatUntil([&] { return framesOfHeartbeats() == 8; }));
  EXPECT_FALSE(in_.hasBeaten());
}

// Heartbeats last twice as long as a silent peer would be kept, and then stop.
TEST_F(Heartbeats, APeerIsKeptWhileItBeatsInTheRing) {
  offerRing();
  const std::uint64_t epoch = agent_->peer("b")->epoch();
  const auto end = Clock::now() + 2s;
  ASSERT_TRUE(beatUntil([&] { return Clock::now() >= end; }));
  EXPECT_EQ(agent_->peer("b")->state(), PeerState::kReady);
  EXPECT_EQ(agent_->peer("b")->epoch(), epoch);
  EXPECT_TRUE(agent_->peer("b")->over(epoch, 20s));
  const auto took = std::chrono::duration<double, std::milli>(Clock::now() - last_beat_).count();
  std::printf("lost after %.0f ms of silence; detect is 1000\n", took);
  EXPECT_GE(took, 750);
}

}  // namespace
}  // namespace viaduct::agent
