// Tests a connection that resumes the session of an earlier connection.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "agent/session/connection.h"
#include "agent/session/session_pair_testing.h"

namespace viaduct::agent {
namespace {

class ResumeTest : public ::testing::Test {
 protected:
  static ConnectionConfig resuming(const Life& life) {
    ConnectionConfig config = configOf("dialer");
    config.resume = life;
    return config;
  }
  ManualPoller manual_;
  const Key key_ = base::secretFromText("of the life"), other_ = base::secretFromText("another");
};

TEST_F(ResumeTest, EachEndLearnsTheOthersFrameCount) {
  SessionPair pair(Kind::kTcp, manual_, resuming({.epoch = 7, .heard = 3, .key = key_}));
  Recorder& user = pair.at_listener;
  user.verdict = Life{.epoch = 7, .heard = 5, .key = key_};
  user.on_judge = [&] {
    ASSERT_TRUE(pair.listener->resume());
    EXPECT_EQ(pair.listener->resume()->epoch, 7U);
    EXPECT_EQ(pair.listener->resume()->heard, 3U);
    EXPECT_TRUE(pair.listener->proves(key_));
    EXPECT_FALSE(pair.listener->proves(other_)) << "the key of another life";
  };
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  EXPECT_EQ(user.judged, 1);
  EXPECT_EQ(*pair.at_dialer.epoch, 7U);
  ASSERT_TRUE(pair.dialer->resume());
  EXPECT_EQ(pair.dialer->resume()->heard, 5U);
  ASSERT_TRUE(pair.dialer->send(FrameType::kNote, bytesOf("on")));
  EXPECT_TRUE(manual_.run([&] { return user.frames.size() == 1; }));
}

TEST_F(ResumeTest, AFirstConnectionResumesNoLife) {
  SessionPair pair(Kind::kTcp, manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  EXPECT_FALSE(pair.dialer->resume());
  EXPECT_FALSE(pair.listener->resume());
  EXPECT_FALSE(pair.listener->proves(key_));
  EXPECT_FALSE(pair.listener->proves({}));
}

// The listener knows the secret, but not the key of the life.
TEST_F(ResumeTest, TheDialerRefusesAListenerWithoutTheLifesKey) {
  SessionPair pair(Kind::kTcp, manual_, resuming({.epoch = 7, .key = key_}));
  pair.at_listener.verdict = Life{.epoch = 7, .key = other_};
  ASSERT_TRUE(manual_.run([&] { return pair.at_dialer.closes == 1; }));
  EXPECT_EQ(pair.at_dialer.code(), Code::kProtocol);
  EXPECT_FALSE(pair.at_dialer.epoch);
}

TEST_F(ResumeTest, TheDialerRefusesAnotherEpoch) {
  SessionPair pair(Kind::kTcp, manual_, resuming({.epoch = 7, .key = key_}));
  pair.at_listener.verdict = Life{.epoch = 8, .key = key_};
  ASSERT_TRUE(manual_.run([&] { return pair.at_dialer.closes == 1; }));
  EXPECT_EQ(pair.at_dialer.code(), Code::kProtocol);
}

TEST_F(ResumeTest, ARefusalReachesTheDialer) {
  SessionPair pair(Kind::kTcp, manual_, resuming({.epoch = 7, .key = key_}));
  pair.at_listener.verdict = Error{.code = Code::kPeerLost, .detail = "that session is over"};
  ASSERT_TRUE(manual_.run([&] { return pair.at_dialer.closes == 1; }));
  EXPECT_EQ(pair.at_dialer.code(), Code::kPeerLost);
  EXPECT_EQ(pair.at_dialer.error->detail, "that session is over");
}

// A proof that was overheard on one connection is refused on the next.
TEST_F(ResumeTest, AProofIsGoodForOneConnection) {
  Key first{};
  for (int i = 0; i < 2; ++i) {
    SessionPair pair(Kind::kTcp, manual_, resuming({.epoch = 7, .key = key_}));
    pair.at_listener.verdict = Life{.epoch = 7, .key = key_};
    ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
    const Key proof = pair.listener->resume()->proof;
    EXPECT_NE(proof, pair.dialer->resume()->proof) << "nor for the other end";
    EXPECT_NE(proof, std::exchange(first, proof));
  }
}

TEST_F(ResumeTest, OnlyTcpConnectionsCanResume) {
  SessionPair tcp(Kind::kTcp, manual_), local(Kind::kUnix, manual_);
  ASSERT_TRUE(manual_.run([&] { return tcp.ready() && local.ready(); }));
  EXPECT_TRUE(tcp.dialer->canResume());
  EXPECT_TRUE(tcp.listener->canResume());
  EXPECT_FALSE(local.dialer->canResume());
  EXPECT_FALSE(local.dialer->hearing().awaited);
}

TEST_F(ResumeTest, HeartbeatsHaveNoNumber) {
  SessionPair pair(Kind::kTcp, manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  EXPECT_EQ(pair.listener->numberedHeard(), 0U);
  for (const auto type : {FrameType::kHeartbeat, FrameType::kNote, FrameType::kHeartbeat,
                          FrameType::kPin, FrameType::kBye})
    ASSERT_TRUE(pair.dialer->send(type, {}));
  ASSERT_TRUE(manual_.run([&] { return pair.at_listener.types.size() == 5; }));
  EXPECT_EQ(pair.listener->numberedHeard(), 3U);
  EXPECT_EQ(pair.dialer->numberedHeard(), 0U);
}

// Frames that no dialer sends. Over a Unix socket they need only a checksum.
class WrongResume : public ResumeTest {
 protected:
  void injectBeforeTheHello(std::initializer_list<std::size_t> sizes) {
    SessionPair pair(Kind::kUnix, manual_);
    pair.at_dialer.on_judge = [&] {
      FrameSealer sealer{kSessionFrames};
      for (int i = 0; i < 2; ++i)
        sealer.seal(numberOf(FrameType::kNote), {}, {}, 0);  // open and proof
      for (const std::size_t size : sizes) {
        const base::Bytes payload(size);
        const auto header = sealer.seal(numberOf(FrameType::kResume), payload, {}, 0);
        ASSERT_GT(::send(pair.raw_dialer, header.data(), header.size(), 0), 0);
        ASSERT_GT(::send(pair.raw_dialer, payload.data(), payload.size(), 0), 0);
      }
    };
    ASSERT_TRUE(manual_.run([&] { return pair.at_listener.closes == 1; }));
    EXPECT_EQ(pair.at_listener.code(), Code::kProtocol);
    EXPECT_EQ(pair.at_listener.judged, 0);
    detail_ = pair.at_listener.error->detail;
  }
  std::string detail_;
};

TEST_F(WrongResume, CutShortOrTooLong) {
  injectBeforeTheHello({47});
  EXPECT_NE(detail_.find("resume: cut short"), std::string::npos) << detail_;
  injectBeforeTheHello({49});
  EXPECT_NE(detail_.find("49 bytes exceeds the limit of 48"), std::string::npos) << detail_;
}

TEST_F(WrongResume, Twice) {
  injectBeforeTheHello({48, 48});
  EXPECT_NE(detail_.find("unexpected resume"), std::string::npos) << detail_;
}

}  // namespace
}  // namespace viaduct::agent
