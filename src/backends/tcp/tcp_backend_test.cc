// Tests a pair of tcp links without faults.
#include <sys/ioctl.h>

#include <ostream>

#include "backends/tcp/socket.h"
#include "backends/tcp/tcp_link.h"
#include "backends/tcp/tcp_testing.h"
#include "base/net/listener.h"
#include "support/free_port.h"

namespace viaduct::tcp {
namespace {

class TcpMoves : public TcpPair {
 protected:
  // Both ends pin one region under slot 0.
  void pinBoth(const Region& a, const Region& b) {
    pair_->pin(0, 0, a.segment());
    pair_->pin(1, 0, b.segment());
  }
};

TEST_F(TcpMoves, LinkBecomesReadyAtBothEnds) {
  open();
  EXPECT_EQ(link(0).state().text, "socket+frames");
  EXPECT_EQ(pair_->ends[1].changes, 1);
  EXPECT_EQ(backend_[1]->strangers(), 0U);
}

TEST_F(TcpMoves, WriteLandsAndIsCounted) {
  open();
  const Region from(100'000, 1);
  Region into(100'000);
  pinBoth(from, into);
  EXPECT_EQ(link(0).reaches(OpKind::kWrite, 0, 0), "socket+frames");
  EXPECT_EQ(link(0).reaches(OpKind::kWrite, 1, 0), std::nullopt);
  EXPECT_EQ(link(0).reaches(OpKind::kWrite, 0, 1), std::nullopt);
  const std::vector ops{core::Op{.local = from.at(), .remote = into.at(), .bytes = 100'000}};
  EXPECT_EQ(post(0, OpKind::kWrite, 5, ops), 1U);
  ASSERT_TRUE(finish(0, 5, 1));
  EXPECT_EQ(ended(0, 5).bytes, 100'000U);
  EXPECT_EQ(ended(0, 5).failed, 0U);
  EXPECT_EQ(from.bytes, into.bytes);
}

struct Level {
  Privacy privacy;
  std::string_view way;
};
class TcpLevels : public TcpMoves, public ::testing::WithParamInterface<Level> {};

INSTANTIATE_TEST_SUITE_P(At, TcpLevels,
                         ::testing::Values(Level{Privacy::kOff, "socket+off"},
                                           Level{Privacy::kAuto, "socket+frames"},
                                           Level{Privacy::kIntegrity, "socket+integrity"},
                                           Level{Privacy::kEncrypted, "socket+encrypted"},
                                           Level{Privacy::kRequired, "socket+encrypted"}));

// The link has several sockets. The ops are lists of pieces, and one large piece.
TEST_P(TcpLevels, BytesMoveInBothDirections) {
  for (Settings& settings : settings_) {
    settings.sockets = 2;
    settings.privacy = GetParam().privacy;
  }
  open();
  EXPECT_EQ(link(0).state().text, GetParam().way);
  EXPECT_EQ(link(1).isPrivate(), GetParam().way == "socket+encrypted");
  const Region from(3 << 20, 1);
  Region into(3 << 20), back(3 << 20);
  pinBoth(from, into);
  pair_->pin(0, 1, back.segment());
  const auto ops = scattered(from, into, 100'000, 5);
  for (std::size_t posted = 0; posted < ops.size();) {
    posted += post(0, OpKind::kWrite, 5, std::span(ops).subspan(posted));
    turnRails(0, 1);
    turnRails(1, 1);
  }
  ASSERT_TRUE(finish(0, 5, ops.size()));
  EXPECT_EQ(ended(0, 5).failed, 0U);
  EXPECT_EQ(from.bytes, into.bytes);
  const std::vector read{
      core::Op{.local = back.at(), .remote = into.at(), .bytes = 3 << 20, .local_pin = 1}};
  post(0, OpKind::kRead, 6, read);
  ASSERT_TRUE(finish(0, 6, 1));
  EXPECT_EQ(ended(0, 6).failed, 0U);
  EXPECT_EQ(back.bytes, from.bytes);
  for (const auto& backend : backend_) {
    std::chrono::nanoseconds sealing{0};
    for (const SocketStatistics& rail : backend->sockets()) sealing += rail.sealing;
    EXPECT_TRUE(GetParam().privacy < Privacy::kIntegrity || sealing.count() > 0)
        << "some are timed";
    EXPECT_TRUE(GetParam().privacy != Privacy::kOff || sealing.count() == 0);
  }
}

TEST_F(TcpMoves, RequiredRefusesAPeerThatIsOff) {
  settings_[0].privacy = Privacy::kRequired;
  settings_[1].privacy = Privacy::kOff;
  open(false);
  const auto unusable = [&](std::size_t side) {
    return link(side).state().phase == core::LinkState::Phase::kUnusable;
  };
  ASSERT_TRUE(pair_->run([&] { return unusable(0) && unusable(1); }));
  EXPECT_NE(link(0).state().text.find("the peer has turned it off"), std::string::npos);
  EXPECT_NE(link(1).state().text.find("this agent has turned it off"), std::string::npos);
}

TEST_F(TcpMoves, PostSendsASmallWriteAtOnce) {
  open();
  const Region from(8, 1);
  Region into(8);
  pinBoth(from, into);
  const std::vector ops{core::Op{.local = from.at(), .remote = into.at(), .bytes = 8}};
  post(0, OpKind::kWrite, 5, ops);
  ASSERT_TRUE(runAlone(1, [&] { return from.bytes == into.bytes; }));
}

TEST_F(TcpMoves, DuringASlowLongPayloadNotEveryPacketWakesTheRail) {
  open();
  const Region from(16 << 20, 1);
  Region into(16 << 20);
  pinBoth(from, into);
  const auto fdOf = [&](std::size_t side) { return TcpPair::socketOf(side, 0); };
  const auto awaited = [&] {
    int bytes = 0;
    socklen_t length = sizeof(bytes);
    EXPECT_EQ(::getsockopt(fdOf(1), SOL_SOCKET, SO_RCVLOWAT, &bytes, &length), 0);
    return bytes;
  };
  // The initiator's first send then ends in the middle of a frame.
  constexpr int kLittle = 64 << 10;
  ASSERT_EQ(::setsockopt(fdOf(0), SOL_SOCKET, SO_SNDBUF, &kLittle, sizeof(kLittle)), 0);
  const std::vector ops{core::Op{.local = from.at(), .remote = into.at(), .bytes = 16 << 20}};
  post(0, OpKind::kWrite, 5, ops);
  turnRails(0, 1);
  ASSERT_TRUE(runAlone(1, [&] { return awaited() > 1; }));
  ASSERT_TRUE(finish(0, 5, 1));
  EXPECT_EQ(ended(0, 5).failed, 0U);
  EXPECT_TRUE(testing::same(from.bytes, into.bytes));
  EXPECT_TRUE(pair_->run([&] { return awaited() == 1; })) << "a byte of the next frame wakes";
}

TEST_F(TcpMoves, TheAcceptingEndPostsToo) {
  open();
  const Region from(5000, 1);
  Region into(5000);
  pinBoth(into, from);
  const std::vector ops{core::Op{.local = from.at(), .remote = into.at(), .bytes = 5000}};
  post(1, OpKind::kWrite, 5, ops);
  ASSERT_TRUE(finish(1, 5, 1));
  EXPECT_EQ(from.bytes, into.bytes);
}

// A post holds the agent's lock, while a poll may run beside other threads.
TEST_F(TcpMoves, APostLeavesALargeFrameForPoll) {
  open();
  const Region from(1 << 20, 1);
  Region into(1 << 20);
  pinBoth(from, into);
  const auto arrived = [&] {
    int bytes = 0;
    EXPECT_EQ(::ioctl(socketOf(1, 0), FIONREAD, &bytes), 0);
    return bytes;
  };
  std::vector ops{core::Op{.local = from.at(), .remote = into.at(), .bytes = 64 << 10}};
  post(0, OpKind::kWrite, 5, ops);
  EXPECT_EQ(arrived(), 0);
  turnRails(0, 1);
  EXPECT_GT(arrived(), 0);
  ASSERT_TRUE(finish(0, 5, 1));
  ops.front().bytes = 4096;
  post(0, OpKind::kWrite, 6, ops);
  EXPECT_GT(arrived(), 0) << "a small frame is sent at once";
  ASSERT_TRUE(finish(0, 6, 1));
}

struct Shape {
  OpKind kind;
  std::size_t bytes, piece;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << opKindName(shape.kind) << ' ' << shape.bytes << " in about " << shape.piece;
}

class TcpShapes : public TcpPair, public ::testing::WithParamInterface<Shape> {};

TEST_P(TcpShapes, MovesEveryByteOnce) {
  open();
  const Shape shape = GetParam();
  const bool write = shape.kind == OpKind::kWrite;
  Region here(shape.bytes, write ? 1 : 0), there(shape.bytes, write ? 0 : 2);
  pair_->pin(0, 0, here.segment());
  pair_->pin(1, 0, there.segment());
  const auto ops = scattered(here, there, shape.piece, 3);
  ASSERT_EQ(post(0, shape.kind, 9, ops), ops.size());
  ASSERT_TRUE(finish(0, 9, ops.size()));
  EXPECT_EQ(ended(0, 9).failed, 0U);
  EXPECT_EQ(ended(0, 9).moved, ops.size());
  EXPECT_EQ(ended(0, 9).bytes, shape.bytes);
  EXPECT_EQ(here.bytes, there.bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TcpShapes,
    ::testing::Values(Shape{OpKind::kWrite, 1, 1}, Shape{OpKind::kWrite, 30'000, 4},
                      Shape{OpKind::kWrite, 3'000'000, 300},
                      Shape{OpKind::kWrite, 40'000'000, 4096},
                      Shape{OpKind::kWrite, 50'000'000, 9'000'000}, Shape{OpKind::kRead, 1, 1},
                      Shape{OpKind::kRead, 30'000, 4}, Shape{OpKind::kRead, 3'000'000, 300},
                      Shape{OpKind::kRead, 40'000'000, 4096},
                      Shape{OpKind::kRead, 50'000'000, 9'000'000}));

TEST_F(TcpMoves, ManyTransfersAtOnce) {
  open();
  const Region from(1 << 20, 1);
  Region into(1 << 20);
  pinBoth(from, into);
  std::vector<core::Op> ops;
  for (std::size_t at = 0; at < from.bytes.size(); at += 1024)
    ops.push_back({.local = from.at(at), .remote = into.at(at), .bytes = 1024});
  for (std::size_t i = 0; i < ops.size(); ++i)
    ASSERT_EQ(post(0, OpKind::kWrite, 100 + i, std::span(ops).subspan(i, 1)), 1U);
  for (std::size_t i = 0; i < ops.size(); ++i) ASSERT_TRUE(finish(0, 100 + i, 1));
  EXPECT_EQ(from.bytes, into.bytes);
}

TEST_F(TcpMoves, AFullQueueAcceptsNoOps) {
  open();
  const Region from(8, 1);
  Region into(8);
  pinBoth(from, into);
  const std::vector ops{core::Op{.local = from.at(), .remote = into.at(), .bytes = 8}};
  std::uint64_t number = 0;
  while (post(0, OpKind::kWrite, number, ops) == 1) ASSERT_LT(++number, 100'000U);
  for (std::uint64_t t = 0; t < number; ++t) ASSERT_TRUE(finish(0, t, 1));
  EXPECT_EQ(post(0, OpKind::kWrite, number, ops), 1U);
  ASSERT_TRUE(finish(0, number, 1));
}

// Both directions are full of writes and reads. An end that waited for its peer to read would hang.
TEST_F(TcpMoves, FloodInBothDirectionsEnds) {
  // This thread drives both ends, and a busy machine may stop it for a while.
  settings_[0].detect = settings_[1].detect = std::chrono::minutes(1);
  open();
  constexpr std::size_t kBytes = 24 << 20;
  std::array<Region, 2> source{Region(kBytes, 1), Region(kBytes, 2)};
  std::array<Region, 2> written{Region(kBytes), Region(kBytes)},
      read{Region(kBytes), Region(kBytes)};
  for (const int i : {0, 1}) {
    const auto side = static_cast<std::size_t>(i);
    pair_->pin(i, 0, source[side].segment());
    pair_->pin(i, 1, written[side].segment());
    pair_->pin(i, 2, read[side].segment());
  }
  std::array<std::vector<core::Op>, 2> writes, reads;
  for (const std::size_t i : {0U, 1U}) {
    writes[i] = scattered(source[i], written[1 - i], 20'000, 3);
    for (auto& op : writes[i]) op.remote_pin = 1;
    reads[i] = scattered(read[i], source[1 - i], 20'000, 4);
    for (auto& op : reads[i]) op.local_pin = 2;
    post(i, OpKind::kWrite, 1, writes[i]);
    post(i, OpKind::kRead, 2, reads[i]);
  }
  for (const std::size_t i : {0U, 1U}) {
    ASSERT_TRUE(finish(i, 1, writes[i].size()));
    ASSERT_TRUE(finish(i, 2, reads[i].size()));
    for (const std::uint64_t number : {1, 2})
      ASSERT_EQ(ended(i, number).failed, 0U) << ended(i, number).why->text();
    EXPECT_EQ(written[1 - i].bytes, source[i].bytes);
    EXPECT_EQ(read[i].bytes, source[1 - i].bytes);
  }
}

TEST_F(TcpMoves, IdleRailsAreNotBusy) {
  open();
  const Region from(8, 1);
  Region into(8);
  pinBoth(from, into);
  const std::vector ops{core::Op{.local = from.at(), .remote = into.at(), .bytes = 8}};
  post(0, OpKind::kWrite, 1, ops);
  EXPECT_TRUE(rail(0).busy());
  ASSERT_TRUE(finish(0, 1, 1));
  ASSERT_TRUE(pair_->run([&] { return !rail(0).busy() && !rail(1).busy(); }));
  // Events of the watched descriptors alone wake the rails again.
  post(0, OpKind::kWrite, 2, ops);
  ASSERT_TRUE(finish(0, 2, 1));
}

struct Rails {
  std::vector<std::string> sources0, sources1;
  std::uint32_t sockets0, sockets1;
};
class TcpRails : public TcpMoves, public ::testing::WithParamInterface<Rails> {};

// The rails without a socket serve no link.
TEST_P(TcpRails, EachOneWithASocketMovesDataWhateverRailsThePeerHas) {
  const Rails& with = GetParam();
  settings_[0].rails = with.sources0;
  settings_[1].rails = with.sources1;
  settings_[0].sockets = with.sockets0;
  settings_[1].sockets = with.sockets1;
  open();
  constexpr std::size_t kBytes = 1 << 20;
  for (const std::size_t side : {0U, 1U})
    for (std::size_t i = 0; i < backend_[side]->rails().size(); ++i) {
      ASSERT_EQ(link(side).servedBy(rail(side, i)), i < backend_[0]->rails().size());
      if (!link(side).servedBy(rail(side, i))) continue;
      const Region from(kBytes, 1);
      Region into(kBytes);
      pair_->pin(static_cast<int>(side), 0, from.segment());
      pair_->pin(static_cast<int>(1 - side), 0, into.segment());
      const auto ops = scattered(from, into, 5000, 2);
      for (std::uint64_t number = 1; number < 4; ++number) {
        ASSERT_EQ(post(side, OpKind::kWrite, number + 10 * i, ops, i), ops.size());
        ASSERT_TRUE(finish(side, number + 10 * i, ops.size()));
      }
      EXPECT_EQ(from.bytes, into.bytes);
    }
}

INSTANTIATE_TEST_SUITE_P(Counts, TcpRails,
                         ::testing::Values(Rails{{"127.0.0.2", "127.0.0.3"}, {}, 1, 1},
                                           Rails{{}, {"127.0.0.2", "127.0.0.3"}, 1, 1},
                                           Rails{{"127.0.0.2", "127.0.0.3"}, {"127.0.0.2"}, 2, 3},
                                           Rails{{"lo"}, {"lo"}, 4, 1}));

TEST_F(TcpMoves, RailsBindTheirSource) {
  settings_[0].rails = {"127.0.0.2", "127.0.0.3"};
  open();
  EXPECT_EQ(rail(0, 0).name(), "127.0.0.2");
  EXPECT_EQ(rail(0, 1).name(), "127.0.0.3");
  std::vector<std::string> seen;
  for (const base::SocketAddress& one : static_cast<TcpLink&>(link(1)).peers())
    seen.push_back(one.withPort(0).text());
  EXPECT_EQ(seen, (std::vector<std::string>{"127.0.0.2:0", "127.0.0.3:0"}));
}

TEST_F(TcpMoves, WorksOverIpv6) {
  settings_[0].listen = settings_[1].listen = {"[::1]:0"};
  const auto probe = listenAddresses("[::1]:0");
  if (!probe || !base::listenAt(probe->front())) GTEST_SKIP() << "skipped: no IPv6 loopback";
  open();
  const Region from(50'000, 1);
  Region into(50'000);
  pinBoth(from, into);
  const auto ops = scattered(from, into, 500, 2);
  post(0, OpKind::kWrite, 1, ops);
  ASSERT_TRUE(finish(0, 1, ops.size()));
  EXPECT_EQ(from.bytes, into.bytes);
}

TEST_F(TcpMoves, WildcardListenNamesTheMachinesAddresses) {
  settings_[1].listen = {"0.0.0.0:0"};
  open();
  const auto there = decodeAddress(backend_[1]->address());
  ASSERT_TRUE(there);
  EXPECT_TRUE(std::any_of(there->addresses.begin(), there->addresses.end(),
                          [](const base::SocketAddress& e) { return e.isLoopback(); }));
  for (const base::SocketAddress& one : there->addresses) EXPECT_FALSE(one.isAny());
}

TEST_F(TcpMoves, MemoryOfOtherKindsIsNotReached) {
  open();
  const auto key = backend_[0]->pin(3, {.kind = MemoryKind::kDevice, .address = 4096, .bytes = 10});
  ASSERT_TRUE(key);
  EXPECT_TRUE(key->empty());
}

TEST(TcpOpen, RefusesUnknownRailsAndAddresses) {
  const auto poller = *base::Poller::open();
  Settings settings;
  settings.rails = {"nosuchif0"};
  TcpBackend no_rail({.settings = settings, .poller = *poller});
  const auto opened = no_rail.open(settings);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text().find("nosuchif0"), std::string::npos);
  settings = {};
  settings.listen = {"192.0.2.1:0"};
  TcpBackend no_address({.settings = settings, .poller = *poller});
  EXPECT_FALSE(no_address.open(settings));
}

class TcpPorts : public ::testing::Test {
 protected:
  // The port at which a backend with this range listens, or the error's text.
  std::string open(PortRange ports) {
    settings_.tcp_ports = ports;
    auto& backend = *backends_.emplace_back(
        std::make_unique<TcpBackend>(core::BackendContext{settings_, *poller_}));
    if (const auto opened = backend.open(settings_); !opened) return opened.error().text();
    return std::to_string(decodeAddress(backend.address())->addresses.front().port());
  }
  Settings settings_;
  const std::unique_ptr<base::Poller> poller_ = *base::Poller::open();
  std::vector<std::unique_ptr<TcpBackend>> backends_;
};

TEST_F(TcpPorts, ABusyPortOfTheRangeIsSkipped) {
  const std::uint16_t first = testing::freePort(), last = first + 50;
  EXPECT_EQ(open({first, first}), std::to_string(first));
  const std::string next = open({first, last});
  EXPECT_NE(next, std::to_string(first));
  EXPECT_GT(std::atoi(next.c_str()), first) << next;
  EXPECT_LE(std::atoi(next.c_str()), last) << next;
}

TEST_F(TcpPorts, TheErrorNamesARangeWithoutAFreePort) {
  const std::uint16_t port = testing::freePort();
  EXPECT_EQ(open({port, port}), std::to_string(port));
  const std::string why = open({port, port});
  EXPECT_NE(why.find("VIADUCT_TCP_PORTS=" + std::to_string(port)), std::string::npos) << why;
  EXPECT_NE(why.find("widen VIADUCT_TCP_PORTS"), std::string::npos) << why;
}

}  // namespace
}  // namespace viaduct::tcp
