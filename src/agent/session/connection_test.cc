#include "agent/session/connection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "agent/session/session_pair_testing.h"
#include "base/net/dialer.h"
#include "base/net/listener.h"
#include "support/shortage.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

class ConnectionTest : public ::testing::TestWithParam<Kind> {
 protected:
  ManualPoller manual_;
};

INSTANTIATE_TEST_SUITE_P(Over, ConnectionTest, ::testing::Values(Kind::kTcp, Kind::kUnix),
                         [](const auto& way) { return way.param == Kind::kTcp ? "Tcp" : "Unix"; });

// A text of `size` bytes, some of them zero, that differs with `seed`.
std::string pattern(std::size_t size, std::size_t seed) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>((i * 131 + seed) >> (i % 3));
  return out;
}

TEST_P(ConnectionTest, BothEndsMeetAndFramesPassBothWays) {
  SessionPair pair(GetParam(), manual_);
  pair.at_listener.verdict = Life{.epoch = 42};
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  EXPECT_EQ(*pair.at_dialer.epoch, 42U);
  EXPECT_EQ(*pair.at_listener.epoch, 42U);
  EXPECT_EQ(pair.at_dialer.hello, helloOf("listener"));
  EXPECT_EQ(pair.at_listener.hello, helloOf("dialer"));
  EXPECT_EQ(pair.dialer->theirs().name, "listener");
  EXPECT_EQ(pair.dialer->deriveKey("x"), pair.listener->deriveKey("x"));
  EXPECT_NE(pair.dialer->deriveKey("x"), pair.dialer->deriveKey("y"));

  ASSERT_TRUE(pair.dialer->send(FrameType::kNote, bytesOf("there")));
  ASSERT_TRUE(pair.dialer->sendParts(FrameType::kBackend, bytesOf("one"), bytesOf("two")));
  ASSERT_TRUE(pair.listener->send(FrameType::kBye, {}));
  ASSERT_TRUE(manual_.run(
      [&] { return pair.at_listener.frames.size() == 2 && pair.at_dialer.frames.size() == 1; }));
  EXPECT_EQ(pair.at_listener.frames, (std::vector<std::string>{"there", "onetwo"}));
  EXPECT_EQ(pair.at_listener.types, (std::vector{FrameType::kNote, FrameType::kBackend}));
  EXPECT_EQ(pair.at_dialer.types, (std::vector{FrameType::kBye}));
}

// The dialer's last epoch was 3.
TEST_P(ConnectionTest, AnEpochThatIsNotGreaterIsRefused) {
  for (const std::uint64_t epoch : {std::uint64_t{0}, std::uint64_t{3}, kMaxEpoch + 1}) {
    SessionPair pair(GetParam(), manual_);
    pair.at_listener.verdict = Life{.epoch = epoch};
    ASSERT_TRUE(manual_.run([&] { return pair.at_dialer.closes > 0; })) << epoch;
    EXPECT_EQ(pair.at_dialer.code(), Code::kProtocol);
    EXPECT_FALSE(pair.at_dialer.epoch);
  }
}

TEST_P(ConnectionTest, EverySessionHasItsOwnKeys) {
  SessionPair one(GetParam(), manual_), two(GetParam(), manual_);
  ASSERT_TRUE(manual_.run([&] { return one.ready() && two.ready(); }));
  EXPECT_NE(one.dialer->deriveKey("x"), two.dialer->deriveKey("x"));
}

TEST_P(ConnectionTest, NamesTheOtherEnd) {
  SessionPair pair(GetParam(), manual_);
  const bool is_unix = GetParam() == Kind::kUnix;
  EXPECT_EQ(pair.dialer->isUnix(), is_unix);
  EXPECT_EQ(pair.listener->peerPid(), is_unix ? ::getpid() : 0);
  EXPECT_TRUE(pair.listener->remoteText().starts_with(is_unix ? "unix:pid " : "127.0.0.1:"))
      << pair.listener->remoteText();
}

TEST_P(ConnectionTest, ARefusalReachesTheDialer) {
  SessionPair pair(GetParam(), manual_);
  pair.at_listener.verdict = Error{.code = Code::kDenied,
                                   .operation = "connect",
                                   .detail = "two agents are called dialer",
                                   .remedy = "rename one"};
  ASSERT_TRUE(manual_.run([&] { return pair.at_dialer.closes + pair.at_listener.closes == 2; }));
  for (const Recorder* end : {&pair.at_dialer, &pair.at_listener}) {
    EXPECT_EQ(end->code(), Code::kDenied);
    EXPECT_EQ(end->error->detail, "two agents are called dialer");
    EXPECT_EQ(end->error->remedy, "rename one");
    EXPECT_FALSE(end->epoch);
  }
}

TEST_P(ConnectionTest, ADialerMayRefuseTheListener) {
  SessionPair pair(GetParam(), manual_);
  pair.at_dialer.verdict = Error{.code = Code::kCancelled, .detail = "another way is better"};
  ASSERT_TRUE(manual_.run([&] { return pair.at_dialer.closes + pair.at_listener.closes == 2; }));
  EXPECT_EQ(pair.at_dialer.code(), Code::kCancelled);
  EXPECT_EQ(pair.at_listener.code(), Code::kPeerLost);
  EXPECT_EQ(pair.at_listener.judged, 0);
}

TEST_P(ConnectionTest, NotesOfTheLargestSizePassInOrder) {
  SessionPair pair(GetParam(), manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < 8; ++i) {
    notes.push_back(pattern(i % 2 == 0 ? kMaxNoteBytes : i, i));
    Status sent = pair.dialer->send(FrameType::kNote, bytesOf(notes.back()));
    while (!sent && sent.error().code == Code::kBusy) {
      manual_.pollOnce();
      sent = pair.dialer->send(FrameType::kNote, bytesOf(notes.back()));
    }
    ASSERT_TRUE(sent) << sent.error().text();
  }
  ASSERT_TRUE(manual_.run([&] { return pair.at_listener.frames.size() == notes.size(); }));
  EXPECT_EQ(pair.at_listener.frames, notes);
  EXPECT_EQ(pair.dialer->unsent(), 0U);
}

TEST_P(ConnectionTest, SendRefusesInvalidFramesAndTheSessionGoesOn) {
  SessionPair pair(GetParam(), manual_);
  EXPECT_EQ(pair.dialer->send(FrameType::kNote, {}).error().code, Code::kInvalid);  // too early
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  const std::string large(kMaxFramePayload + 1, 'x');
  EXPECT_EQ(pair.dialer->send(FrameType::kNote, bytesOf(large)).error().code, Code::kInvalid);
  EXPECT_EQ(pair.dialer->send(FrameType::kAccept, {}).error().code, Code::kInvalid);
  const std::vector<int> fds(kMaxFrameFds + 1, 0);
  EXPECT_EQ(pair.dialer->send(FrameType::kNote, {}, fds).error().code, Code::kInvalid);
  ASSERT_TRUE(pair.dialer->send(FrameType::kNote, bytesOf("still here")));
  EXPECT_TRUE(manual_.run([&] { return pair.at_listener.frames.size() == 1; }));
}

TEST_P(ConnectionTest, AHelloBeyondTheLimitsDoesNotStart) {
  auto [left, right] = socketPair(GetParam());
  Hello mine = helloOf("a");
  mine.backends.assign(3, {"b", base::Bytes(30000)});
  Recorder user;
  const auto opened = Connection::open(std::move(left), Connection::Role::kDialer, configOf(mine),
                                       manual_.poller(), user);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kInvalid);
}

TEST_P(ConnectionTest, APeerThatDoesNotReadMakesTheSenderBusyAndLosesNothing) {
  SessionPair pair(GetParam(), manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  pair.listener->pauseReading(true);
  std::size_t sent = 0;
  const std::size_t size = std::size_t{256} << 10U;
  for (;; ++sent) {
    const Status status = pair.dialer->send(FrameType::kNote, bytesOf(pattern(size, sent)));
    manual_.pollOnce();
    if (status) continue;
    ASSERT_EQ(status.error().code, Code::kBusy);
    break;
  }
  EXPECT_GT(pair.dialer->unsent(), std::size_t{1} << 20U);
  EXPECT_LE(pair.dialer->unsent(), (std::size_t{1} << 20U) + size + kFrameHeaderBytes);
  manual_.settle();
  EXPECT_TRUE(pair.at_listener.frames.empty());
  pair.listener->pauseReading(false);
  ASSERT_TRUE(manual_.run([&] { return pair.at_listener.frames.size() == sent; }));
  for (std::size_t i = 0; i < sent; ++i)
    ASSERT_TRUE(pair.at_listener.frames[i] == pattern(size, i)) << i;
}

TEST_P(ConnectionTest, PausingInAFramesCallbackHoldsBackTheNextFrame) {
  SessionPair pair(GetParam(), manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  pair.at_listener.on_frame = [&] { pair.listener->pauseReading(true); };
  for (const char* text : {"one", "two", "three"})
    ASSERT_TRUE(pair.dialer->send(FrameType::kNote, bytesOf(text)));
  for (std::size_t count = 1; count <= 3; ++count) {
    ASSERT_TRUE(manual_.run([&] { return pair.at_listener.frames.size() == count; }));
    manual_.settle();
    ASSERT_EQ(pair.at_listener.frames.size(), count);
    pair.listener->pauseReading(false);
  }
}

TEST_P(ConnectionTest, APausedEndStillGetsTheLastFramesAndTheClose) {
  SessionPair pair(GetParam(), manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  pair.listener->pauseReading(true);
  ASSERT_TRUE(pair.dialer->send(FrameType::kNote, bytesOf("last words")));
  manual_.settle();
  EXPECT_TRUE(pair.at_listener.frames.empty());
  pair.dialer.reset();
  ASSERT_TRUE(manual_.run([&] { return pair.at_listener.closes == 1; }));
  EXPECT_EQ(pair.at_listener.frames, std::vector<std::string>{"last words"});
  EXPECT_EQ(pair.at_listener.code(), Code::kPeerLost);
}

TEST_P(ConnectionTest, BothEndsFloodingAtOnceDoNotDeadlock) {
  SessionPair pair(GetParam(), manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  pair.at_dialer.keep = pair.at_listener.keep = false;
  const std::string note = pattern(100000, 1);
  const std::size_t count = 300;
  std::array<std::size_t, 2> sent{};
  ASSERT_TRUE(manual_.run([&] {
    for (const std::size_t end : {0U, 1U}) {
      Connection& from = end == 0 ? *pair.dialer : *pair.listener;
      while (sent[end] < count && from.send(FrameType::kNote, bytesOf(note))) ++sent[end];
    }
    return pair.at_dialer.bytes == count * note.size() &&
           pair.at_listener.bytes == count * note.size();
  }));
  EXPECT_EQ(pair.at_dialer.closes + pair.at_listener.closes, 0);
}

TEST_P(ConnectionTest, ThePeersCloseIsReportedOnce) {
  SessionPair pair(GetParam(), manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  ASSERT_TRUE(pair.dialer->send(FrameType::kBye, bytesOf("bye")));
  pair.dialer.reset();
  ASSERT_TRUE(manual_.run([&] { return pair.at_listener.closes == 1; }));
  EXPECT_EQ(pair.at_listener.frames.size(), 1U);
  EXPECT_EQ(pair.at_listener.code(), Code::kPeerLost);
  EXPECT_EQ(pair.at_listener.error->peer, "dialer");
  EXPECT_EQ(pair.at_dialer.closes, 0);
  EXPECT_FALSE(pair.listener->send(FrameType::kNote, {}));
  manual_.settle();
  EXPECT_EQ(pair.at_listener.closes, 1);
}

// The failed send is noticed before the peer's last frames are read. The peer's last frames are
// still delivered, and closed() is called by the poller, not inside send().
TEST_P(ConnectionTest, AfterAFailedSendThePeersLastFramesAreDelivered) {
  SessionPair pair(GetParam(), manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  ASSERT_TRUE(pair.dialer->send(FrameType::kNote, bytesOf("last words")));
  pair.dialer.reset();
  for (int i = 0; i < 100 && pair.listener->send(FrameType::kNote, bytesOf("x")); ++i) {
  }
  const Status again = pair.listener->send(FrameType::kNote, bytesOf("x"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kPeerLost);
  EXPECT_EQ(pair.at_listener.closes, 0);
  ASSERT_TRUE(manual_.run([&] { return pair.at_listener.closes == 1; }));
  EXPECT_EQ(pair.at_listener.code(), Code::kPeerLost);
  if (GetParam() == Kind::kUnix) {  // a TCP reset may discard them
    EXPECT_EQ(pair.at_listener.frames, std::vector<std::string>{"last words"});
  }
}

TEST_P(ConnectionTest, ReadNowDeliversWithoutThePoller) {
  SessionPair pair(GetParam(), manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  const auto before = pair.listener->lastHeard();
  pair.at_listener.on_frame = [&] { pair.listener->readNow(); };  // does nothing
  ASSERT_TRUE(pair.dialer->send(FrameType::kNote, bytesOf("quick")));
  while (pair.at_listener.frames.empty()) pair.listener->readNow();
  EXPECT_EQ(pair.at_listener.frames.size(), 1U);
  EXPECT_GT(pair.listener->lastHeard(), before);
}

TEST_P(ConnectionTest, CanBeDestroyedInsideEveryCallback) {
  for (int which = 0; which < 5; ++which) {
    SessionPair pair(GetParam(), manual_);
    Recorder& user = pair.at_listener;
    bool ran = false;
    const auto destroy = [&] {
      ran = true;
      pair.listener.reset();
    };
    if (which == 0) user.on_judge = destroy;
    if (which == 1) user.on_established = destroy;
    if (which == 2) user.on_frame = destroy;
    if (which == 3) user.on_closed = destroy;
    if (which == 4) {
      user.on_judge = destroy;
      user.verdict = Error{.detail = "no"};
    }
    manual_.run([&] { return ran || pair.ready(); });
    if (which == 2) {
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(pair.dialer->send(FrameType::kNote, bytesOf("x")));
      EXPECT_TRUE(manual_.run([&] { return ran; }));
      EXPECT_EQ(user.frames.size(), 1U);
    }
    if (which == 3) pair.dialer.reset();
    EXPECT_TRUE(manual_.run([&] { return ran; })) << which;
    if (which != 3) {
      EXPECT_EQ(user.closes, 0) << which;
    }
    manual_.settle();
  }
}

class FdTest : public ::testing::Test {
 protected:
  // An eventfd that is recognized by the number in it.
  static base::Fd numbered(std::uint64_t number) {
    return base::Fd(::eventfd(static_cast<unsigned>(number), EFD_NONBLOCK | EFD_CLOEXEC));
  }
  static std::uint64_t numberIn(const base::Fd& fd) {
    std::uint64_t number = 0;
    EXPECT_EQ(::read(fd.get(), &number, sizeof number), 8);
    return number;
  }
  ManualPoller manual_;
};

TEST_F(FdTest, ArriveWithTheirFrameEvenThroughAFullSocket) {
  SessionPair pair(Kind::kUnix, manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  std::vector<std::size_t> counts;
  pair.at_listener.on_frame = [&] { counts.push_back(pair.at_listener.fds.size()); };
  std::uint64_t number = 0;
  std::vector<std::size_t> wanted;
  const std::string filler(200000, 'f');  // soon more than the socket accepts
  for (std::size_t i = 0; i < 6; ++i) {
    std::vector<base::Fd> mine;
    std::vector<int> fds;
    for (std::size_t n = 0; n < i * 3 % 17; ++n) {
      mine.push_back(numbered(++number));
      fds.push_back(mine.back().get());
    }
    ASSERT_TRUE(pair.dialer->send(FrameType::kBackend, bytesOf(i % 2 == 0 ? filler : "x"), fds));
    wanted.push_back(number);
  }
  ASSERT_TRUE(manual_.run([&] { return counts.size() == wanted.size(); }));
  EXPECT_EQ(counts, wanted);
  for (std::uint64_t i = 0; i < number; ++i) EXPECT_EQ(numberIn(pair.at_listener.fds[i]), i + 1);
  EXPECT_NE(::fcntl(pair.at_listener.fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(FdTest, DoNotPassOverTcp) {
  SessionPair pair(Kind::kTcp, manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  const base::Fd fd = numbered(1);
  const int raw = fd.get();
  EXPECT_EQ(pair.dialer->send(FrameType::kBackend, {}, {&raw, 1}).error().code, Code::kInvalid);
}

TEST_F(FdTest, AnInvalidFdIsAnErrorAndTheSessionGoesOn) {
  SessionPair pair(Kind::kUnix, manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  const int none = -1;
  EXPECT_FALSE(pair.dialer->send(FrameType::kBackend, {}, {&none, 1}));
  ASSERT_TRUE(pair.dialer->send(FrameType::kBackend, bytesOf("on")));
  EXPECT_TRUE(manual_.run([&] { return pair.at_listener.frames.size() == 1; }));
}

TEST_F(FdTest, AtTheLimitOfOpenFilesTheReceiverClosesWithThatReason) {
  SessionPair pair(Kind::kUnix, manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  const base::Fd fd = numbered(1);
  const int raw = fd.get();
  ASSERT_TRUE(pair.dialer->send(FrameType::kBackend, bytesOf("x"), {&raw, 1}));
  {
    const testing::Shortage none;
    ASSERT_TRUE(manual_.run([&] { return pair.at_listener.closes == 1; }));
  }
  EXPECT_EQ(pair.at_listener.code(), Code::kExhausted);
}

// A frame that announces fds but brings none, as from a faulty peer.
TEST_F(FdTest, AFrameWithoutTheFdsItNamesBreaksTheSession) {
  SessionPair pair(Kind::kUnix, manual_);
  ASSERT_TRUE(manual_.run([&] { return pair.ready(); }));
  FrameSealer sealer{kSessionFrames};
  // Gives the frame the number that follows the three frames of the dialer.
  for (int i = 0; i < 3; ++i) sealer.seal(numberOf(FrameType::kNote), {}, {}, 0);
  const auto header = sealer.seal(numberOf(FrameType::kNote), {}, {}, 2);
  ASSERT_EQ(::send(pair.raw_dialer, header.data(), header.size(), 0),
            static_cast<ssize_t>(header.size()));
  ASSERT_TRUE(manual_.run([&] { return pair.at_listener.closes == 1; }));
  EXPECT_EQ(pair.at_listener.code(), Code::kProtocol);
  EXPECT_NE(pair.at_listener.error->detail.find("file descriptors"), std::string::npos);
}

// A session over a listener and a dialer with an abstract name, as in an agent.
TEST(SessionTest, OverAListenerAndADialer) {
  ManualPoller manual;
  Recorder at_dialer, at_listener;
  std::unique_ptr<Connection> dialer, listener;
  const std::string name = fmt::format("viaduct-session-test-{}", ::getpid());
  const auto door = std::move(*base::Listener::open(
      {"127.0.0.1:0"}, name, manual.poller(), [&](base::Fd fd, base::Unproven::Place) {
        listener = std::move(*Connection::open(std::move(fd), Connection::Role::kListener,
                                               configOf("listener"), manual.poller(), at_listener));
      }));
  const auto reach = base::Dialer::start(
      {"unix:@" + name, door->addresses()[0]}, Clock::now() + 5s, manual.poller(),
      [&](Result<base::Fd> fd, const std::string&) {
        dialer = std::move(*Connection::open(*std::move(fd), Connection::Role::kDialer,
                                             configOf("dialer"), manual.poller(), at_dialer));
      });
  ASSERT_TRUE(manual.run([&] { return at_dialer.epoch && at_listener.epoch; }));
  EXPECT_EQ(dialer->remoteText(), "unix:@" + name);
  EXPECT_EQ(dialer->peerPid(), ::getpid());
}

}  // namespace
}  // namespace viaduct::agent
