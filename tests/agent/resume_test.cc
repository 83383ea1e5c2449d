// A second connection continues or replaces a session, at the listening agent. The test plays the
// other end.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/session/grants.h"
#include "agent/session/messages.h"
#include "agent/session/session_pair_testing.h"
#include "base/net/dialer.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

// One of the test's connections to the agent.
struct Line {
  Recorder user;
  std::unique_ptr<Connection> connection;
  bool closed() const { return user.closes > 0; }
};

class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    Settings settings;
    settings.name = "a";
    settings.secret = "secret";
    settings.backends = {"tcp"};
    auto opened = Agent::open(settings);
    ASSERT_TRUE(opened) << opened.error().text();
    agent_.emplace(*std::move(opened));
    dial(first_);
    ASSERT_TRUE(manual_.run([&] { return first_.user.epoch.has_value(); }));
    life_ = {.epoch = *first_.user.epoch, .key = first_.connection->deriveKey("life")};
    ASSERT_TRUE(first_.connection->send(FrameType::kSynced, {}));
    ASSERT_TRUE(manual_.run([&] { return count(first_, FrameType::kSynced) == 1; }));
    ASSERT_TRUE(agent_->peer("b")->ready(20s));
    say(first_, "one");
    hear("one");
  }
  void dial(Line& line, std::optional<Life> resume = std::nullopt, std::string name = "b",
            std::uint8_t id = 1, std::uint64_t last_epoch = 0, const Card* card = nullptr) {
    Hello mine = helloOf(std::move(name));
    mine.agent[0] = id;
    mine.boot = "another host";
    mine.backends.clear();
    mine.detect_ms = 60'000;
    mine.last_epoch = last_epoch;
    ConnectionConfig config = configOf(mine);
    config.resume = resume;
    if (card != nullptr) {
      config.secret = card->secret;
      config.claim = claimOf(card->grants);
    }
    const auto dialer = base::Dialer::start(
        {agent_->card().addresses.front()}, Clock::now() + 20s, manual_.poller(),
        [&](Result<base::Fd> socket, const std::string&) {
          ASSERT_TRUE(socket) << socket.error().text();
          line.connection =
              std::move(*Connection::open(*std::move(socket), Connection::Role::kDialer,
                                          std::move(config), manual_.poller(), line.user));
        });
    ASSERT_TRUE(manual_.run([&] { return line.connection != nullptr; }));
  }
  static std::ptrdiff_t count(const Line& line, FrameType type) {
    return std::count(line.user.types.begin(), line.user.types.end(), type);
  }
  static void say(Line& line, std::string_view text) {
    ASSERT_TRUE(line.connection->send(FrameType::kNote, bytesOf(text)));
  }
  void hear(std::string_view text) {
    const auto note = agent_->waitNote(20s);
    ASSERT_TRUE(note) << note.error().text();
    EXPECT_EQ(note->text(), text);
  }
  // Expects that an agent that cannot prove to own the session is refused, and changes no state.
  void isRefused(const Life& life, std::string name = "b", std::uint8_t id = 1,
                 const Card* card = nullptr) {
    Line line;
    dial(line, life, std::move(name), id, 0, card);
    ASSERT_TRUE(manual_.run([&] { return line.closed(); }));
    EXPECT_FALSE(line.user.epoch);
    EXPECT_EQ(line.user.code(), Code::kPeerLost);
    EXPECT_EQ(line.user.error->detail, "that session is over");
    say(first_, "still here");
    hear("still here");
    EXPECT_EQ(agent_->peer("b")->epoch(), life_.epoch);
    EXPECT_FALSE(first_.closed());
  }

  std::optional<Agent> agent_;
  ManualPoller manual_;
  Line first_, second_;
  Life life_;
};

TEST_F(Resume, ContinuesAfterTheLastReceivedFrame) {
  const auto pin = agent_->allocate(4096, {.label = "mine"});
  ASSERT_TRUE(pin);
  ASSERT_TRUE(agent_->peer("b")->note("heard"));
  ASSERT_TRUE(manual_.run([&] { return count(first_, FrameType::kNote) == 1; }));
  const std::uint64_t heard = first_.connection->numberedHeard();
  ASSERT_TRUE(agent_->peer("b")->note("not heard"));
  life_.heard = heard;
  dial(second_, life_);
  ASSERT_TRUE(manual_.run([&] { return count(second_, FrameType::kNote) == 1; }));
  EXPECT_EQ(second_.user.epoch, life_.epoch);
  EXPECT_EQ(second_.user.frames.front(), "not heard");
  EXPECT_EQ(count(second_, FrameType::kPin), 0) << "was heard before";
  EXPECT_EQ(second_.connection->resume()->heard, 2U) << "synced, and a note";
  EXPECT_TRUE(manual_.run([&] { return first_.closed(); })) << "its place is taken";
  say(second_, "two");
  hear("two");
  EXPECT_EQ(agent_->peer("b")->state(), PeerState::kReady);
  EXPECT_EQ(agent_->peer("b")->epoch(), life_.epoch);
}

// Frame numbers go on even if the second connection is replaced as well.
TEST_F(Resume, FrameNumbersContinueOverAllConnections) {
  Line lines[3];
  for (std::uint64_t i = 0; i < 3; ++i) {
    dial(lines[i], life_);  // reports that it has received no frame
    ASSERT_TRUE(manual_.run([&] { return count(lines[i], FrameType::kSynced) == 1; }));
    EXPECT_EQ(lines[i].connection->resume()->heard, 2 + i);
    say(lines[i], std::to_string(i));
    hear(std::to_string(i));
  }
}

TEST_F(Resume, IsRefusedWithoutTheSessionsKey) {
  isRefused({.epoch = life_.epoch, .key = base::secretFromText("guessed")});
  isRefused({.epoch = life_.epoch});
}

// The rights of a session are those of the card that began it.
TEST_F(Resume, IsRefusedUnderAnotherCard) {
  const auto card = agent_->card({.pins = "*"});
  ASSERT_TRUE(card) << card.error().text();
  isRefused(life_, "b", 1, &*card);
}

TEST_F(Resume, IsRefusedForAnUnknownSessionOrFrame) {
  isRefused({.epoch = life_.epoch + 1, .key = life_.key});
  isRefused({.epoch = life_.epoch, .heard = 1000, .key = life_.key});
  isRefused(life_, "b", 2);
  isRefused(life_, "nobody");
}

// The agent does not keep frames whose receipt was confirmed.
TEST_F(Resume, IsRefusedIfTheFramesAreNoLongerKept) {
  const base::Bytes heard =
      base::Writer().put(std::uint64_t{first_.connection->numberedHeard()}).take();
  ASSERT_TRUE(first_.connection->send(FrameType::kHeartbeat, heard));
  say(first_, "two");
  hear("two");
  isRefused(life_);
}

// The peer had dialed before it accepted the agent's connection. The agent reads that early hello
// only now.
TEST_F(Resume, AHelloFromBeforeTheSessionDoesNotEndIt) {
  dial(second_);
  ASSERT_TRUE(manual_.run([&] { return second_.closed(); }));
  EXPECT_EQ(second_.user.code(), Code::kBusy);
  EXPECT_FALSE(second_.user.epoch);
  say(first_, "still here");
  hear("still here");
  EXPECT_EQ(agent_->peer("b")->epoch(), life_.epoch);
  EXPECT_FALSE(first_.closed());
}

TEST_F(Resume, APeerThatHasLostTheSessionBeginsANewOne) {
  dial(second_, std::nullopt, "b", 1, life_.epoch);
  ASSERT_TRUE(manual_.run([&] { return second_.user.epoch && first_.closed(); }));
  EXPECT_EQ(*second_.user.epoch, life_.epoch + 1);
  ASSERT_TRUE(second_.connection->send(FrameType::kSynced, {}));
  say(second_, "again");
  hear("again");
}

// If it did replace it, the holder of a card could end the session of another agent.
TEST_F(Resume, ASessionUnderACardDoesNotReplaceOneWithoutIt) {
  const auto card = agent_->card({.pins = "*"});
  ASSERT_TRUE(card) << card.error().text();
  dial(second_, std::nullopt, "b", 1, life_.epoch, &*card);
  ASSERT_TRUE(manual_.run([&] { return second_.closed(); }));
  EXPECT_EQ(second_.user.code(), Code::kBusy);
  say(first_, "still here");
  hear("still here");
}

class WrongHeartbeat : public Resume, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(WrongHeartbeat, EndsTheSession) {
  const base::Bytes wrong(GetParam(), std::byte{0x7f});
  ASSERT_TRUE(first_.connection->send(FrameType::kHeartbeat, wrong));
  EXPECT_TRUE(manual_.run([&] { return first_.closed(); }));
  EXPECT_EQ(agent_->peer("b")->state(), PeerState::kLost);
}

class LyingBorrower : public Resume {};

// The borrower settles only a lease that its owner has ended.
TEST_F(LyingBorrower, DoesNotSettleALiveLease) {
  const auto memory = agent_->allocate(4096);
  ASSERT_TRUE(memory);
  const Selection all{*Blocks::strided({.base = memory->info().address, .bytes = 4096, .count = 1}),
                      {}};
  const auto lease = agent_->lease(*agent_->peer("b"), all, {.access = MemoryAccess::kReadWrite});
  ASSERT_TRUE(lease) << lease.error().text();
  ASSERT_TRUE(first_.connection->send(FrameType::kLeaseSettled, base::encode(LeaseMessage{1})));
  EXPECT_TRUE(manual_.run([&] { return first_.closed(); }));
  EXPECT_EQ(*lease->wait(20s), LeaseState::kPeerLost);
}

// Eight bytes are a frame number, here one larger than any sent.
INSTANTIATE_TEST_SUITE_P(Bytes, WrongHeartbeat, ::testing::Values(1U, 7U, 8U, 9U));

}  // namespace
}  // namespace viaduct::agent
