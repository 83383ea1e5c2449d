// Tests the handshake of two ends with a relay between them that changes bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/session/session_pair_testing.h"
#include "base/net/dialer.h"
#include "base/net/listener.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

// Two connections that are connected through a relay.
class Relayed {
 public:
  enum Direction : std::size_t { kToListener, kToDialer };

  Relayed(Kind kind, ManualPoller& manual) : manual_(manual) {
    auto [left, to_left] = socketPair(kind);
    auto [right, to_right] = socketPair(kind);
    ends_ = {std::move(to_left), std::move(to_right)};
    dialer = std::move(*Connection::open(std::move(left), Connection::Role::kDialer,
                                         configOf("dialer"), manual.poller(), at_dialer));
    listener = std::move(*Connection::open(std::move(right), Connection::Role::kListener,
                                           configOf("listener"), manual.poller(), at_listener));
  }

  // Runs the poller and relays the bytes of each direction through `change`, until both ends are
  // established or closed. Closes the connection of an end that waits for more bytes in vain.
  template <class Change>
  void run(Change change) {
    int quiet = 0;
    while (!(at_dialer.epoch && at_listener.epoch) && at_dialer.closes + at_listener.closes < 2) {
      manual_.pollOnce(std::chrono::milliseconds(quiet > 3 ? 1 : 0));
      const bool there = pump(kToListener, change);
      const bool moved = pump(kToDialer, change) || there;
      quiet = moved ? 0 : quiet + 1;
      if (over_ || quiet > 20) ends_ = {};
    }
  }
  void run() {
    run([](Direction, std::string&) {});
  }
  // Passes on the bytes for the listener, in one piece once there are `size` bytes.
  template <class Change>
  void relayOnce(std::size_t size, Change change) {
    base::Bytes room(size);
    while (::recv(ends_[kToListener].get(), room.data(), size, MSG_PEEK | MSG_DONTWAIT) !=
           static_cast<ssize_t>(size))
      manual_.pollOnce();
    pump(kToListener, change);
  }
  // Closes both sides once the bytes in flight have been passed on.
  void hangUp() { over_ = true; }
  std::size_t passed(Direction direction) const { return passed_[direction]; }

  Recorder at_dialer, at_listener;
  std::unique_ptr<Connection> dialer, listener;
  std::size_t offset = 0;  // position in their direction of the bytes that `change` gets

 private:
  template <class Change>
  bool pump(Direction direction, Change change) {
    const int from = ends_[direction].get(), to = ends_[1 - direction].get();
    std::string bytes(1U << 14U, '\0');
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) over_ = true;
    if (got <= 0) return false;
    bytes.resize(static_cast<std::size_t>(got));
    const std::size_t begin = passed_[direction];
    passed_[direction] += bytes.size();
    offset = begin;
    change(direction, bytes);
    if (!bytes.empty())
      static_cast<void>(::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    return true;
  }

  ManualPoller& manual_;
  std::array<base::Fd, 2> ends_;  // [0] to the dialer, [1] to the listener
  std::array<std::size_t, 2> passed_{};
  bool over_ = false;
};

class HandshakeTest : public ::testing::TestWithParam<Kind> {
 protected:
  ManualPoller manual_;
};

INSTANTIATE_TEST_SUITE_P(Over, HandshakeTest, ::testing::Values(Kind::kTcp, Kind::kUnix),
                         [](const auto& way) { return way.param == Kind::kTcp ? "Tcp" : "Unix"; });

TEST_P(HandshakeTest, AChangedByteAnywhereEndsIt) {
  std::array<std::size_t, 2> lengths{};
  {
    Relayed whole(GetParam(), manual_);
    whole.run();
    ASSERT_TRUE(whole.at_dialer.epoch && whole.at_listener.epoch);
    lengths = {whole.passed(Relayed::kToListener), whole.passed(Relayed::kToDialer)};
  }
  for (const auto where : {Relayed::kToListener, Relayed::kToDialer})
    for (std::size_t at = 0; at < lengths[where]; ++at) {
      Relayed session(GetParam(), manual_);
      session.run([&](Relayed::Direction direction, std::string& bytes) {
        if (direction != where || at < session.offset || at - session.offset >= bytes.size())
          return;
        char& byte = bytes[at - session.offset];
        byte = static_cast<char>(byte ^ (1 << (at % 8)));
      });
      const Recorder& fooled =
          where == Relayed::kToListener ? session.at_listener : session.at_dialer;
      EXPECT_FALSE(fooled.epoch) << where << " " << at;
      EXPECT_EQ(session.at_dialer.closes, 1) << where << " " << at;
      EXPECT_EQ(session.at_listener.closes, 1) << where << " " << at;
    }
}

TEST_P(HandshakeTest, AClosedConnectionAtAnyByteEndsIt) {
  for (const auto where : {Relayed::kToListener, Relayed::kToDialer})
    for (std::size_t keep = 0;; ++keep) {
      Relayed session(GetParam(), manual_);
      session.run([&](Relayed::Direction direction, std::string& bytes) {
        if (direction != where || session.offset + bytes.size() <= keep) return;
        bytes.resize(keep - session.offset);
        session.hangUp();
      });
      if (session.passed(where) <= keep) break;  // nothing was cut off
      const Recorder& waiting =
          where == Relayed::kToListener ? session.at_listener : session.at_dialer;
      EXPECT_FALSE(waiting.epoch) << where << " " << keep;
      EXPECT_EQ(session.at_dialer.closes, 1);
      EXPECT_EQ(session.at_listener.closes, 1);
      EXPECT_EQ(waiting.code(), Code::kPeerLost);
    }
}

// A relay changes, repeats and drops frames of an established session.
TEST(WireTest, ReplayedReorderedForgedAndDroppedFramesEndTheSession) {
  const std::size_t frame = kFrameHeaderBytes + 3;
  using Change = std::function<void(std::string&)>;
  const std::vector<std::pair<const char*, Change>> attacks{
      {"replayed", [&](std::string& b) { b.insert(frame, b.substr(0, frame)); }},
      {"reordered", [&](std::string& b) { b = b.substr(frame) + b.substr(0, frame); }},
      {"dropped", [&](std::string& b) { b.erase(0, frame); }},
      {"changed", [&](std::string& b) { b[kFrameHeaderBytes] ^= 1; }},
      {"retyped", [&](std::string& b) { b[6] = static_cast<char>(FrameType::kBye); }},
      {"inserted", [&](std::string& b) {
         FrameSealer forger{kSessionFrames};
         const auto header = forger.seal(numberOf(FrameType::kNote), bytesOf("zzz"), {}, 0);
         b.insert(0, textOf(header) + "zzz");
       }}};
  for (const auto& one : attacks) {
    const char* const name = one.first;
    const Change& attack = one.second;
    ManualPoller manual;
    Relayed session(Kind::kTcp, manual);
    session.run();
    ASSERT_TRUE(session.at_dialer.epoch && session.at_listener.epoch);
    ASSERT_TRUE(session.dialer->send(FrameType::kNote, bytesOf("one")));
    ASSERT_TRUE(session.dialer->send(FrameType::kNote, bytesOf("two")));
    session.relayOnce(2 * frame, [&](Relayed::Direction, std::string& bytes) { attack(bytes); });
    ASSERT_TRUE(manual.run([&] { return session.at_listener.closes == 1; })) << name;
    EXPECT_EQ(session.at_listener.code(), Code::kProtocol) << name;
    EXPECT_LE(session.at_listener.frames.size(), 2U) << name;
    for (const std::string& text : session.at_listener.frames)
      EXPECT_TRUE(text == "one" || text == "two") << name;
  }
}

TEST_P(HandshakeTest, AWrongSecretIsDeniedAtBothEnds) {
  SessionPair pair(GetParam(), manual_, configOf("dialer", "red"), configOf("listener", "blue"));
  ASSERT_TRUE(manual_.run([&] { return pair.at_dialer.closes + pair.at_listener.closes == 2; }));
  for (const Recorder* end : {&pair.at_dialer, &pair.at_listener}) {
    EXPECT_EQ(end->code(), Code::kDenied);
    EXPECT_NE(end->error->text().find("the secret does not match"), std::string::npos);
    EXPECT_FALSE(end->error->cause.empty());
    EXPECT_FALSE(end->error->remedy.empty());
    EXPECT_EQ(end->judged, 0);
  }
}

// One end of a handshake, which the test plays.
class ByHand {
 public:
  ByHand(base::Fd socket, ManualPoller& manual) : socket_(std::move(socket)), manual_(manual) {}
  void sendBytes(ByteSpan bytes) {
    ASSERT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT),
              static_cast<ssize_t>(bytes.size()));
  }
  void send(FrameType type, ByteSpan payload) {
    const auto header = sealer.seal(numberOf(type), payload, {}, 0);
    sendBytes(header);
    if (!payload.empty()) sendBytes(payload);
  }
  // Returns the next frame, or the type 0 if the other end has closed.
  Frame receive() {
    Frame frame;
    while (decoder.next(frame) == FrameDecoder::Next::kMore) {
      manual_.pollOnce();
      pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 0) != 1) continue;
      const auto space = decoder.space();
      const ssize_t got = ::recv(socket_.get(), space.data(), space.size(), MSG_DONTWAIT);
      if (got <= 0) break;
      decoder.wrote(static_cast<std::size_t>(got));
    }
    return frame;
  }
  FrameSealer sealer{kSessionFrames};
  FrameDecoder decoder{kSessionFrames, kMaxHelloPayload};

 private:
  base::Fd socket_;
  ManualPoller& manual_;
};

class ByHandTest : public ::testing::Test {
 protected:
  std::unique_ptr<Connection> open(Connection::Role role,
                                   ConnectionConfig config = configOf("us")) {
    auto [ours, theirs] = socketPair(Kind::kTcp);
    hand_.emplace(std::move(theirs), manual_);
    return std::move(
        *Connection::open(std::move(ours), role, std::move(config), manual_.poller(), user_));
  }
  bool closed() {
    return manual_.run([&] { return user_.closes > 0; });
  }
  ManualPoller manual_;
  Recorder user_;
  std::optional<ByHand> hand_;
};

// An open with some public key and this claim.
base::Bytes openWith(std::string_view claim = {}) {
  Key key{};
  key.fill('n');
  return base::encode(key, base::Bytes(bytesOf(claim).begin(), bytesOf(claim).end()));
}

TEST_F(ByHandTest, ADialerWithoutTheProofIsDenied) {
  const auto listener = open(Connection::Role::kListener);
  hand_->send(FrameType::kOpen, openWith());
  ASSERT_EQ(typeOf(hand_->receive()), FrameType::kChallenge);
  hand_->send(FrameType::kProof, bytesOf(std::string(32, 'p')));
  const Frame answer = hand_->receive();
  EXPECT_EQ(typeOf(answer), FrameType::kDeny);
  EXPECT_TRUE(closed());
  EXPECT_EQ(user_.code(), Code::kDenied);
}

TEST_F(ByHandTest, AnUnknownClaimIsDeniedLikeAWrongProof) {
  ConnectionConfig config = configOf("us");
  config.secret_of_claim = [](ByteSpan) -> std::optional<Key> { return std::nullopt; };
  const auto listener = open(Connection::Role::kListener, config);
  hand_->send(FrameType::kOpen, openWith("nobody's"));
  ASSERT_EQ(typeOf(hand_->receive()), FrameType::kChallenge);
  hand_->send(FrameType::kProof, bytesOf(std::string(32, 'p')));
  EXPECT_EQ(typeOf(hand_->receive()), FrameType::kDeny);
  EXPECT_TRUE(closed());
  EXPECT_EQ(user_.code(), Code::kDenied);
}

TEST_F(ByHandTest, AListenerWithoutTheProofIsDenied) {
  const auto dialer = open(Connection::Role::kDialer);
  ASSERT_EQ(typeOf(hand_->receive()), FrameType::kOpen);
  hand_->send(FrameType::kChallenge, bytesOf(std::string(32, 'c')));
  ASSERT_EQ(typeOf(hand_->receive()), FrameType::kProof);
  hand_->send(FrameType::kConfirm, bytesOf(std::string(32, 'p')));
  EXPECT_EQ(typeOf(hand_->receive()), FrameType::kDeny);
  EXPECT_TRUE(closed());
  EXPECT_EQ(user_.code(), Code::kDenied);
}

// The dialer's own proof is sent back to it.
TEST_F(ByHandTest, AReflectedProofIsDenied) {
  const auto dialer = open(Connection::Role::kDialer);
  ASSERT_EQ(typeOf(hand_->receive()), FrameType::kOpen);
  hand_->send(FrameType::kChallenge, bytesOf(std::string(32, 'c')));
  const Frame proof = hand_->receive();
  ASSERT_EQ(typeOf(proof), FrameType::kProof);
  hand_->send(FrameType::kConfirm, base::Bytes(proof.payload.begin(), proof.payload.end()));
  EXPECT_TRUE(closed());
  EXPECT_EQ(user_.code(), Code::kDenied);
}

TEST_F(ByHandTest, AnotherVersionIsNamedAtBothEnds) {
  const auto listener = open(Connection::Role::kListener);
  auto header = hand_->sealer.seal(numberOf(FrameType::kOpen), {}, {}, 0);
  header[4] = std::byte{2};
  hand_->sendBytes(header);
  EXPECT_EQ(typeOf(hand_->receive()), FrameType::kDeny);  // its header names our version
  EXPECT_TRUE(closed());
  EXPECT_EQ(user_.code(), Code::kUnsupported);
  const std::string minor = std::to_string(kWireVersion.minor);
  EXPECT_NE(user_.error->detail.find("version 2." + minor), std::string::npos);
  EXPECT_NE(user_.error->detail.find("this end 1." + minor), std::string::npos);
}

TEST_F(ByHandTest, OtherFramesAreRefusedBeforeTheProof) {
  for (const auto type : {FrameType::kNote, FrameType::kHello, FrameType::kProof,
                          FrameType::kChallenge, FrameType::kConfirm, FrameType::kAccept}) {
    user_ = {};
    const auto listener = open(Connection::Role::kListener);
    hand_->send(type, bytesOf(std::string(32, 'x')));
    EXPECT_TRUE(closed());
    EXPECT_EQ(user_.code(), Code::kProtocol);
    EXPECT_EQ(user_.judged, 0);
    EXPECT_TRUE(user_.frames.empty());
  }
  user_ = {};
  const auto listener = open(Connection::Role::kListener);
  hand_->send(FrameType::kOpen, openWith(std::string(base::kMaxClaimBytes + 1, 'x')));
  EXPECT_TRUE(closed());
  EXPECT_NE(user_.error->detail.find("the limit of 1060"), std::string::npos);
}

TEST_F(ByHandTest, ASlowDialerIsDroppedAtTheDeadline) {
  ConnectionConfig config = configOf("us");
  config.handshake_until = Clock::now() + 100ms;
  const auto until = config.handshake_until;
  const auto listener = open(Connection::Role::kListener, config);
  FrameSealer sealer{kSessionFrames};
  const auto header = sealer.seal(numberOf(FrameType::kOpen), {}, {}, 0);
  for (std::size_t i = 0; user_.closes == 0; ++i) {
    if (i < 20) hand_->sendBytes(ByteSpan(header).subspan(i, 1));
    manual_.pollOnce(10ms);
  }
  EXPECT_GE(Clock::now(), until);
  EXPECT_EQ(user_.code(), Code::kTimeout);
}

// A relay listens at another abstract name and passes all bytes on to the listener.
TEST(UnixBinding, ARelayFromAnotherNameDoesNotPass) {
  ManualPoller manual;
  base::Fd at_relay, at_listener;
  const std::string relay_name = fmt::format("viaduct-relay-{}", ::getpid());
  const std::string real_name = fmt::format("viaduct-real-{}", ::getpid());
  const auto relay = std::move(
      *base::Listener::open({}, relay_name, manual.poller(),
                            [&](base::Fd fd, base::Unproven::Place) { at_relay = std::move(fd); }));
  const auto real = std::move(*base::Listener::open(
      {}, real_name, manual.poller(),
      [&](base::Fd fd, base::Unproven::Place) { at_listener = std::move(fd); }));
  base::Fd at_dialer, onward;
  const auto d1 = base::Dialer::start(
      {"unix:@" + relay_name}, Clock::now() + 5s, manual.poller(),
      [&](Result<base::Fd> fd, const std::string&) { at_dialer = *std::move(fd); });
  const auto d2 = base::Dialer::start(
      {"unix:@" + real_name}, Clock::now() + 5s, manual.poller(),
      [&](Result<base::Fd> fd, const std::string&) { onward = *std::move(fd); });
  ASSERT_TRUE(manual.run([&] { return at_relay && at_listener && at_dialer && onward; }));
  Recorder user_d, user_l;
  const auto dialer = std::move(*Connection::open(std::move(at_dialer), Connection::Role::kDialer,
                                                  configOf("d"), manual.poller(), user_d));
  const auto listener = std::move(*Connection::open(
      std::move(at_listener), Connection::Role::kListener, configOf("l"), manual.poller(), user_l));
  EXPECT_EQ(dialer->remoteText(), "unix:@" + relay_name);
  EXPECT_TRUE(manual.run([&] {
    std::string bytes(4096, '\0');
    for (const auto& [from, to] : {std::pair{&at_relay, &onward}, std::pair{&onward, &at_relay}}) {
      const ssize_t got = ::recv(from->get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got > 0)
        static_cast<void>(
            ::send(to->get(), bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL));
    }
    return user_d.closes + user_l.closes == 2;
  }));
  EXPECT_EQ(user_d.code(), Code::kDenied);
  EXPECT_EQ(user_l.code(), Code::kDenied);
}

}  // namespace
}  // namespace viaduct::agent
