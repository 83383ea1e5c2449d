// Heartbeats between agents of one host are counted in the rings for notes. The test plays the
// other end. docs/design/0008-notes-through-a-ring.md.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "agent/session/note_ring.h"
#include "agent/session/session_pair_testing.h"
#include "base/net/dialer.h"
#include "support/agent_of_a_clock.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

// The detection time is so long that the running time of the test does not matter.
constexpr std::chrono::milliseconds kDetect = 8h;

class Heartbeats : public ::testing::Test {
 protected:
  void SetUp() override {
    Settings settings;
    settings.name = "a";
    settings.secret = "secret";
    settings.backends = {"tcp"};
    settings.detect = kDetect;
    auto opened = AgentOfAClock::open(settings, clock_);
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
    connection_ = dialAs({1}, user_);
    ASSERT_TRUE(user_.epoch) << user_.error.value_or(Error{}).text();
  }
  // Connects an agent of the name b. The agent under test accepts or refuses it.
  std::unique_ptr<Connection> dialAs(const std::array<std::uint8_t, 16>& id, Recorder& user) {
    Hello mine = helloOf("b");
    mine.agent = id;
    mine.backends.clear();
    mine.detect_ms = static_cast<std::uint32_t>(kDetect.count());
    ConnectionConfig config = configOf(mine);
    config.handshake_until = manual_.poller().now() + 20s;
    std::unique_ptr<Connection> connection;
    const auto dialer = base::Dialer::start(
        {"unix:@" + agent_->card().unix_name}, manual_.poller().now() + 20s, manual_.poller(),
        [&](Result<base::Fd> socket, const std::string&) {
          ASSERT_TRUE(socket) << socket.error().text();
          connection = std::move(*Connection::open(*std::move(socket), Connection::Role::kDialer,
                                                   std::move(config), manual_.poller(), user));
        });
    EXPECT_TRUE(manual_.run([&] { return user.epoch || user.closes != 0; }));
    return connection;
  }
  void offerRing() { ASSERT_TRUE(connection_->send(FrameType::kNoteRing, {}, in_.fds())); }
  // Moves the time by an eighth of the detection time, and runs the timers of the agent.
  void pass() {
    clock_.advance(kDetect / 8);
    agent_->poll();
  }
  // Sends heartbeats until `until()` is true.
  template <class F>
  bool beatUntil(F until) {
    return manual_.run([&] {
      out_->beat();
      pass();
      return until();
    });
  }
  std::ptrdiff_t framesOfHeartbeats() const {
    return std::count(user_.types.begin(), user_.types.end(), FrameType::kHeartbeat);
  }

  base::MovableClock clock_;
  base::ManualPoller manual_{&clock_};
  std::optional<Agent> agent_;
  Recorder user_;
  RingReceiver in_ = *RingReceiver::make();
  std::optional<RingSender> out_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(Heartbeats, NoFrameIsSentToAPeerThatReadsTheRing) {
  offerRing();
  ASSERT_TRUE(beatUntil([&] { return in_.hasBeaten(); }));
  const auto before = framesOfHeartbeats();
  int beats = 0;
  ASSERT_TRUE(beatUntil([&] { return (beats += in_.hasBeaten() ? 1 : 0) == 8; }));
  EXPECT_EQ(framesOfHeartbeats(), before);
}

TEST_F(Heartbeats, APeerWithoutARingGetsFrames) {
  EXPECT_TRUE(beatUntil([&] { return framesOfHeartbeats() == 8; }));
  EXPECT_FALSE(in_.hasBeaten());
}

// Sends heartbeats for eight detection times. Then a peer without heartbeats is lost, after three
// quarters of the detection time at least and the whole at most.
TEST_F(Heartbeats, APeerIsKeptWhileItBeatsInTheRing) {
  offerRing();
  const std::uint64_t epoch = agent_->peer("b")->epoch();
  int beats = 0;
  ASSERT_TRUE(beatUntil([&] { return ++beats == 64; }));
  EXPECT_EQ(agent_->peer("b")->state(), PeerState::kReady);
  EXPECT_EQ(agent_->peer("b")->epoch(), epoch);
  int eighths = 1;
  for (; agent_->peer("b")->state() == PeerState::kReady && eighths < 100; ++eighths) pass();
  EXPECT_GE(eighths, 6);
  EXPECT_LE(eighths, 8);
}

// The session with the silent agent is over before the whole detection time has passed.
TEST_F(Heartbeats, ASilentAgentKeepsItsNameForTheDetectionTime) {
  const auto started = clock_.now();
  while (agent_->peer("b")->state() == PeerState::kReady) pass();
  ASSERT_LT(clock_.now() - started, kDetect);
  Recorder early, back, late;
  const auto refused = dialAs({2}, early);
  ASSERT_FALSE(early.epoch) << "another agent took the name of a silent one";
  EXPECT_EQ(early.code(), Code::kBusy) << early.error->text();
  EXPECT_NE(early.error->text().find("fell silent"), std::string::npos) << early.error->text();
  const auto same = dialAs({1}, back);
  ASSERT_TRUE(back.epoch) << back.error.value_or(Error{}).text();
  while (agent_->peer("b")->state() != PeerState::kLost) pass();
  clock_.advance(kDetect);
  const auto taken = dialAs({2}, late);
  EXPECT_TRUE(late.epoch) << late.error.value_or(Error{}).text();
}

}  // namespace
}  // namespace viaduct::agent
