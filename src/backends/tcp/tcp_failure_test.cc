// Tests the tcp backend when a socket, a peer or this process fails.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

#include "backends/tcp/socket.h"
#include "backends/tcp/tcp_link.h"
#include "backends/tcp/tcp_testing.h"
#include "support/bytes.h"
#include "support/shortage.h"

namespace viaduct::tcp {
namespace {

using Phase = core::LinkState::Phase;

class TcpFails : public TcpPair {
 protected:
  static constexpr std::size_t kBytes = std::size_t{12} << 20U;
  void openWithMemory() {
    open();
    pair_->pin(0, 0, here_.segment());
    pair_->pin(1, 0, there_.segment());
    ops_ = scattered(here_, there_, 9000, 4);
  }
  int socketOf(std::size_t side) { return TcpPair::socketOf(side, 0); }
  // Each round moves the poller's clock by `pace`, in addition to real time.
  bool bothUnusable(Duration pace = {}) {
    return pair_->run([&] {
      clock_.advance(pace);
      return link(0).state().phase == Phase::kUnusable && link(1).state().phase == Phase::kUnusable;
    });
  }
  static void fill(Region& region, std::byte with) { testing::fillWith(region.bytes, with); }
  static bool filled(const Region& region, std::byte with) {
    return testing::allAre(region.bytes, with);
  }

  Region here_{kBytes, 1}, there_{kBytes, 2};
  std::vector<core::Op> ops_;
};

struct CloseCase {
  OpKind kind;
  std::size_t side;  // the side that closes
  int turns;         // polls before it closes
};
std::ostream& operator<<(std::ostream& out, const CloseCase& c) {
  return out << opKindName(c.kind) << ", side " << c.side << " after " << c.turns;
}
class TcpCloses : public TcpFails, public ::testing::WithParamInterface<CloseCase> {};

TEST_P(TcpCloses, AfterCloseNothingTouchesOurMemory) {
  openWithMemory();
  const CloseCase& closing = GetParam();
  const std::size_t side = closing.side;
  ASSERT_EQ(post(0, closing.kind, 3, ops_), ops_.size());
  for (int i = 0; i < closing.turns; ++i) pair_->progress();
  link(side).close(pair_->done[side]);
  Region& mine = side == 0 ? here_ : there_;
  fill(mine, std::byte{0x77});
  if (side == 0) {
    const Ended now = ended(0, 3);
    EXPECT_EQ(now.moved + now.failed, ops_.size());
    EXPECT_TRUE(now.failed == 0 || now.why->code == Code::kPeerLost);
  }
  for (int i = 0; i < 200; ++i) pair_->progress();
  EXPECT_TRUE(filled(mine, std::byte{0x77}));
  // The other end notices it, and returns its ops at its own close.
  EXPECT_TRUE(pair_->run([&] { return link(1 - side).state().phase == Phase::kUnusable; }));
  link(1 - side).close(pair_->done[1 - side]);
  const Ended now = ended(0, 3);
  EXPECT_EQ(now.moved + now.failed, ops_.size());
}

std::vector<CloseCase> closeCases() {
  std::vector<CloseCase> out;
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
    for (const std::size_t side : {0U, 1U})
      for (const int turns : {0, 1, 2, 3, 5, 9}) out.push_back({kind, side, turns});
  return out;
}
INSTANTIATE_TEST_SUITE_P(Phases, TcpCloses, ::testing::ValuesIn(closeCases()));

TEST_F(TcpFails, ADialerWithoutDescriptorsReportsTheShortage) {
  open(false);
  const testing::Shortage none;
  ASSERT_TRUE(bothUnusable());
  EXPECT_TRUE(link(0).state().exhausted);
  EXPECT_FALSE(link(1).state().exhausted) << link(1).state().text;
}

TEST_F(TcpFails, AnAcceptingEndWithoutDescriptorsReportsTheShortage) {
  open(false);
  pair_->progress();  // side 0 dials
  const testing::Shortage none;
  ASSERT_TRUE(bothUnusable(std::chrono::milliseconds(10)));
  EXPECT_FALSE(link(0).state().exhausted) << link(0).state().text;
  EXPECT_TRUE(link(1).state().exhausted);
}

TEST_F(TcpFails, AResetInMidFrameEndsTheLinkAtBothEnds) {
  openWithMemory();
  post(0, OpKind::kWrite, 3, ops_);
  post(0, OpKind::kRead, 4, ops_);
  for (int i = 0; i < 3; ++i) pair_->progress();
  // Disconnecting sends a reset.
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  ASSERT_EQ(::connect(socketOf(1), &nowhere, sizeof(nowhere)), 0);
  ASSERT_TRUE(bothUnusable());
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  ASSERT_TRUE(finish(0, 4, ops_.size()));
  EXPECT_EQ(ended(0, 3).why->code, Code::kPeerLost);
  EXPECT_NE(ended(0, 3).why->os_errno, 0) << ended(0, 3).why->text();
  EXPECT_EQ(pair_->ends[0].changes, 2);
  EXPECT_EQ(link(0).reaches(OpKind::kWrite, 0, 0), std::nullopt);
}

TEST_F(TcpFails, OpsOfALostLinkWaitUntilThePeerHasClosed) {
  openWithMemory();
  post(0, OpKind::kWrite, 3, ops_);
  ::shutdown(socketOf(0), SHUT_RDWR);
  turnRails(0, 3);
  EXPECT_EQ(link(0).state().phase, Phase::kUnusable);
  EXPECT_EQ(ended(0, 3).failed, 0U) << "the peer may still be writing what it has received";
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  EXPECT_EQ(link(1).state().phase, Phase::kUnusable);
}

TEST_F(TcpFails, WorkForALinkThatIsNotReadyFails) {
  open(false);
  pair_->pin(0, 0, here_.segment());
  const std::vector ops{core::Op{.local = here_.at(), .remote = there_.at(), .bytes = 8}};
  EXPECT_EQ(link(0).reaches(OpKind::kWrite, 0, 0), std::nullopt);
  ASSERT_EQ(post(0, OpKind::kWrite, 3, ops), 1U);
  turnRails(0, 1);
  EXPECT_EQ(ended(0, 3).failed, 1U);
}

TEST_F(TcpFails, GarbageOnALiveSocketEndsTheLink) {
  openWithMemory();
  const auto before = there_.bytes;
  ASSERT_EQ(::send(socketOf(0), "this is not a frame, and long enough", 36, MSG_NOSIGNAL), 36);
  ASSERT_TRUE(bothUnusable());
  EXPECT_NE(link(1).state().text.find("no frame begins here"), std::string::npos);
  EXPECT_NE(link(0).state().text.find("no frame begins here"), std::string::npos);
  EXPECT_EQ(there_.bytes, before);
}

TEST_F(TcpFails, ACancelledTransferEndsWhenThePeerHasAnswered) {
  openWithMemory();
  post(0, OpKind::kWrite, 3, ops_);
  turnRails(0, 2);
  rail(0).cancel(core::testing::sinkOf(3));
  turnRails(0, 20);
  EXPECT_EQ(ended(0, 3).failed, 0U);
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  EXPECT_EQ(ended(0, 3).why->code, Code::kCancelled);
  fill(here_, std::byte{0x11});
  fill(there_, std::byte{0x22});
  for (int i = 0; i < 100; ++i) pair_->progress();
  EXPECT_TRUE(filled(here_, std::byte{0x11}));
  EXPECT_TRUE(filled(there_, std::byte{0x22}));
  // The link still works.
  post(0, OpKind::kWrite, 4, ops_);
  ASSERT_TRUE(finish(0, 4, ops_.size()));
  EXPECT_TRUE(filled(there_, std::byte{0x11}));
}

TEST_F(TcpFails, WithdrawnPinsAreRefusedInMidTransfer) {
  openWithMemory();
  post(0, OpKind::kWrite, 3, ops_);
  for (int i = 0; i < 2; ++i) pair_->progress();
  ASSERT_TRUE(backend_[1]->unpin(0));
  fill(there_, std::byte{0x22});
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  EXPECT_EQ(ended(0, 3).why->code, Code::kDenied);
  EXPECT_TRUE(filled(there_, std::byte{0x22}));
  EXPECT_EQ(link(0).state().phase, Phase::kReady);
}

// This process stops for longer than a peer waits before it gives up. The kernel's own clock
// measures the age of the data in the socket, so the test really waits.
TEST_F(TcpFails, AfterAFreezeNothingStaleLands) {
  settings_[1].detect = std::chrono::milliseconds(200);
  openWithMemory();
  const auto before = there_.bytes;
  post(0, OpKind::kWrite, 3, ops_);
  turnRails(0, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  base::Poller::Events events;
  poller_->handle(events, poller_->block(events, Clock::now()), Clock::now());
  turnRails(1, 3);
  EXPECT_EQ(link(1).state().phase, Phase::kUnusable);
  EXPECT_EQ(there_.bytes, before);
}

TEST_F(TcpFails, AnIdleLinkIsNotAFreeze) {
  // The limit is long, because a busy machine may stop this process for a while as it moves bytes.
  settings_[0].detect = settings_[1].detect = std::chrono::seconds(1);
  constexpr std::chrono::milliseconds kIdle{1200};
  openWithMemory();
  std::this_thread::sleep_for(kIdle);
  post(0, OpKind::kWrite, 3, ops_);
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  EXPECT_EQ(ended(0, 3).failed, 0U);
  std::this_thread::sleep_for(kIdle);
  const auto back = scattered(there_, here_, 9000, 4);
  post(1, OpKind::kWrite, 3, back);
  ASSERT_TRUE(finish(1, 3, back.size()));
  EXPECT_EQ(ended(1, 3).failed, 0U);
  EXPECT_EQ(link(0).state().phase, Phase::kReady);
}

// An accepting link, and connections of any kind to its listener.
class TcpAccepts : public ::testing::Test {
 protected:
  void SetUp() override {
    settings_.detect = detect_;
    poller_ = *base::Poller::open();
    backend_ = std::make_unique<TcpBackend>(
        core::BackendContext{.settings = settings_, .poller = *poller_});
    ASSERT_TRUE(backend_->open(settings_));
    door_ = decodeAddress(backend_->address())->addresses.front();
    key_[0] = 42;
    core::LinkSeed seed;
    seed.epoch = kEpoch;
    seed.key = key_;
    seed.peer = "guest";
    seed.address = encodeAddress({});
    link_ = backend_->link(std::move(seed), host_);
  }
  void TearDown() override {
    core::Completions out;
    if (link_) link_->close(out);
    link_.reset();
  }
  base::Fd connectOnly() const {
    base::Fd fd(::socket(door_.family(), SOCK_STREAM, 0));
    EXPECT_EQ(::connect(fd.get(), door_.get(), door_.size), 0);
    return fd;
  }
  template <class Said>
  base::Fd say(const Said& bytes) const {
    base::Fd fd = connectOnly();
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return fd;
  }
  SocketHello hello(std::uint32_t index = 0, std::uint32_t count = 2) const {
    return {.link = linkId(key_), .epoch = kEpoch, .index = index, .count = count};
  }
  template <class F>
  bool run(F until) {
    const auto end = Clock::now() + std::chrono::seconds(5);
    base::Poller::Events events;
    while (!until() && Clock::now() < end) {
      const int count = poller_->block(events, Clock::now());
      poller_->handle(events, count, Clock::now());
      core::Completions out;
      for (const auto& rail : backend_->rails()) core::pollAndHandle(*rail, out);
    }
    return until();
  }
  // Whether the other side has closed the connection.
  static bool gone(const base::Fd& fd) {
    char byte = 0;
    const ssize_t got = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  static bool welcomed(const base::Fd& fd) {
    std::array<char, kWelcomeBytes> bytes{};
    return ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_PEEK) ==
           static_cast<ssize_t>(bytes.size());
  }

  static constexpr std::uint64_t kEpoch = 9;
  std::chrono::milliseconds detect_{300};
  Settings settings_;
  std::unique_ptr<base::Poller> poller_;
  std::unique_ptr<TcpBackend> backend_;
  base::SocketAddress door_;
  LinkKey key_ = {};
  testing::LinkEnd host_;
  std::unique_ptr<core::Link> link_;
};

TEST_F(TcpAccepts, TheLinkIsReadyWithItsLastSocket) {
  const base::Fd first = say(encodeHello(hello(0), key_));
  ASSERT_TRUE(run([&] { return welcomed(first); }));
  EXPECT_EQ(link_->state().phase, Phase::kOpening);
  const base::Fd second = say(encodeHello(hello(1), key_));
  ASSERT_TRUE(run([&] { return link_->state().phase == Phase::kReady; }));
}

// Without the peer's address, its wish for protection is unknown. So no socket opens, even for a
// peer that has the key.
TEST_F(TcpAccepts, NothingOpensWithAPeerOfAnotherRelease) {
  core::LinkSeed seed;
  seed.epoch = 10;
  seed.key[3] = 3;
  seed.address = core::Bytes(3, std::byte{1});
  const SocketHello hello{.link = linkId(seed.key), .epoch = 10, .index = 0, .count = 1};
  const LinkKey key = seed.key;
  testing::LinkEnd host;
  const auto link = backend_->link(std::move(seed), host);
  const base::Fd fd = say(encodeHello(hello, key));
  EXPECT_TRUE(run([&] { return gone(fd); }));
  EXPECT_EQ(link->state().phase, Phase::kUnusable);
  EXPECT_NE(link->state().text.find("of another release"), std::string::npos);
  core::Completions out;
  link->close(out);
}

TEST_F(TcpAccepts, GarbageIsDroppedAtOnce) {
  const base::Fd fd = say(std::array<char, kHelloBytes>{});
  ASSERT_TRUE(run([&] { return gone(fd); }));
  EXPECT_EQ(backend_->strangers(), 0U);
}

TEST_F(TcpAccepts, ConnectionsWithoutACompleteHelloAreDroppedInTime) {
  const base::Fd silent = connectOnly();
  const base::Fd half = say(std::array<char, kHelloBytes / 2>{});
  const auto start = Clock::now();
  ASSERT_TRUE(run([&] { return gone(silent) && gone(half); }));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(250));
  EXPECT_EQ(backend_->strangers(), 0U);
}

TEST_F(TcpAccepts, ForgedHellosAreDropped) {
  LinkKey other = key_;
  other[5] = 1;
  const base::Fd forged = say(encodeHello(hello(), other));
  SocketHello late = hello();
  --late.epoch;
  const base::Fd late_one = say(encodeHello(late, key_));
  ASSERT_TRUE(run([&] { return gone(forged) && gone(late_one); }));
  EXPECT_EQ(link_->state().phase, Phase::kOpening);
}

TEST_F(TcpAccepts, EachSocketOfALinkIsAcceptedOnce) {
  const base::Fd first = say(encodeHello(hello(0), key_));
  ASSERT_TRUE(run([&] { return welcomed(first); }));
  const base::Fd again = say(encodeHello(hello(0), key_));
  const base::Fd other_count = say(encodeHello(hello(1, 3), key_));
  ASSERT_TRUE(run([&] { return gone(again) && gone(other_count); }));
  EXPECT_FALSE(gone(first) && !welcomed(first));
  const base::Fd second = say(encodeHello(hello(1), key_));
  ASSERT_TRUE(run([&] { return link_->state().phase == Phase::kReady; }));
  const base::Fd late = say(encodeHello(hello(1), key_));
  ASSERT_TRUE(run([&] { return gone(late); }));
  EXPECT_EQ(link_->state().phase, Phase::kReady);
}

// The message with which the peer's link reports a lost socket.
core::Bytes socketLost(std::uint32_t index, std::uint32_t count, std::uint32_t life) {
  base::Writer out;
  out.put(std::uint8_t{2}).put(index).put(count).put(life).text("because");
  return out.take();
}

TEST_F(TcpAccepts, ALostSocketIsAcceptedAgainInItsNextLifeOnly) {
  const base::Fd first = say(encodeHello(hello(0), key_));
  const base::Fd second = say(encodeHello(hello(1), key_));
  ASSERT_TRUE(run([&] { return link_->state().phase == Phase::kReady; }));
  link_->receive(socketLost(1, 2, 5), {});  // a life that never was
  EXPECT_FALSE(gone(second) && !welcomed(second));
  link_->receive(socketLost(1, 2, 0), {});
  EXPECT_EQ(host_.sent.size(), 1U) << "it says that it has closed its end as well";
  EXPECT_EQ(link_->state().phase, Phase::kReady);
  const base::Fd replayed = say(encodeHello(hello(1), key_));
  ASSERT_TRUE(run([&] { return gone(replayed); }));
  SocketHello next = hello(1);
  next.life = 1;
  const base::Fd again = say(encodeHello(next, key_));
  ASSERT_TRUE(run([&] { return welcomed(again); }));
  link_->receive(socketLost(1, 2, 0), {});  // a late report of the previous life
  EXPECT_FALSE(gone(again) && !welcomed(again));
}

TEST_F(TcpAccepts, ALinkIsReadyWithoutASocketThatCannotOpen) {
  const base::Fd first = say(encodeHello(hello(0), key_));
  ASSERT_TRUE(run([&] { return welcomed(first); }));
  EXPECT_EQ(link_->state().phase, Phase::kOpening);
  link_->receive(socketLost(1, 2, 0), {});
  EXPECT_EQ(link_->state().phase, Phase::kReady);
  for (const auto& bad : {socketLost(2, 2, 0), socketLost(0, 3, 0), core::Bytes{std::byte{2}}})
    link_->receive(bad, {});
  EXPECT_EQ(link_->state().phase, Phase::kReady);
}

TEST_F(TcpAccepts, AHelloMayComeBeforeItsLink) {
  core::LinkSeed seed;
  seed.epoch = 10;
  seed.key[3] = 3;
  seed.address = encodeAddress({});
  const SocketHello early{.link = linkId(seed.key), .epoch = 10, .index = 0, .count = 1};
  const base::Fd fd = say(encodeHello(early, seed.key));
  ASSERT_TRUE(run([&] { return backend_->strangers() == 1; }));
  testing::LinkEnd host;
  const auto link = backend_->link(std::move(seed), host);
  ASSERT_TRUE(run([&] { return link->state().phase == Phase::kReady; }));
  core::Completions out;
  link->close(out);
}

// Many connections without a hello, none of which has reached the time limit yet.
class TcpManyConnections : public TcpAccepts {
 protected:
  TcpManyConnections() { detect_ = std::chrono::minutes(10); }
  // Lowers RLIMIT_NOFILE to 512 while the backend opens, so that a test can fill the room for
  // unproven connections.
  void SetUp() override {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{.rlim_cur = std::min<rlim_t>(before.rlim_cur, 512),
                     .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    TcpAccepts::SetUp();
    room_ = base::Unproven::shareOfDescriptors();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  }

  std::size_t room_ = 0;
};

TEST_F(TcpManyConnections, WithoutAHelloDoNotKeepThePeerOut) {
  std::vector<base::Fd> crowd;
  for (std::size_t i = 0; i < room_ + 50; ++i) crowd.push_back(connectOnly());
  EXPECT_TRUE(run([&] { return gone(crowd.front()); }));
  EXPECT_LE(backend_->strangers(), room_);
  const base::Fd guest = say(encodeHello(hello(0, 1), key_));
  ASSERT_TRUE(run([&] { return link_->state().phase == Phase::kReady; }));
}

TEST_F(TcpAccepts, WithoutDescriptorsItWaitsAndDoesNotSpin) {
  const base::Fd guest = say(encodeHello(hello(0, 1), key_));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  base::Poller::Events events;
  poller_->handle(events, poller_->block(events, Clock::now()), Clock::now());
  const int more = poller_->block(events, Clock::now());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(more, 0);
  EXPECT_TRUE(run([&] { return link_->state().phase == Phase::kReady; }));
}

// A link that dials addresses without a Viaduct peer.
class TcpDials : public TcpAccepts {
 protected:
  std::string reasonFor(const std::vector<base::SocketAddress>& there, const Settings& settings) {
    TcpBackend backend({.settings = settings, .poller = *poller_});
    EXPECT_TRUE(backend.open(settings));
    core::LinkSeed seed;
    seed.dialer = true;
    seed.key[0] = 7;
    seed.address = encodeAddress({.addresses = there});
    testing::LinkEnd host;
    const auto link = backend.link(std::move(seed), host);
    EXPECT_TRUE(run([&] { return link->state().phase != Phase::kOpening; }));
    EXPECT_EQ(host.changes, 1);
    EXPECT_EQ(host.sent.size(), 1U) << "the peer learns of it";
    core::Completions out;
    link->close(out);
    return link->state().text;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(TcpDials, NobodyListens) {
  // Bound, so that no other process gets the port meanwhile.
  const base::Fd bound(::socket(AF_INET, SOCK_STREAM, 0));
  base::SocketAddress there = door_.withPort(0);
  ASSERT_EQ(::bind(bound.get(), there.get(), there.size), 0);
  there = *base::localAddress(bound.get());
  const std::string text = reasonFor({there}, {});
  EXPECT_TRUE(has(text, there.text())) << text;
  EXPECT_TRUE(has(text, "Connection refused")) << text;
  EXPECT_TRUE(has(text, "no process listens")) << text;
}

TEST_F(TcpDials, NoRouteFromTheSource) {
  base::SocketAddress far = door_;
  const auto elsewhere = listenAddresses("192.0.2.1:0");
  far = elsewhere->front().withPort(9);
  Settings settings;
  settings.rails = {"127.0.0.2"};
  const std::string text = reasonFor({far}, settings);
  EXPECT_TRUE(has(text, "no route")) << text;
}

TEST_F(TcpDials, NothingAnswers) {
  // A full backlog drops new connections, as a firewall would.
  const base::Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  base::SocketAddress there = door_.withPort(0);
  ASSERT_EQ(::bind(listener.get(), there.get(), there.size), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  there = *base::localAddress(listener.get());
  std::vector<base::Fd> crowd;
  for (int i = 0; i < 4; ++i) {
    crowd.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    ::connect(crowd.back().get(), there.get(), there.size);
  }
  const std::string text = reasonFor({there}, settings_);
  EXPECT_TRUE(has(text, "no answer: a firewall")) << text;
}

TEST_F(TcpDials, SomebodyElseListens) {
  // Our own listener does not know this key, and closes the connection.
  const std::string text = reasonFor({door_}, {});
  EXPECT_TRUE(has(text, "welcome of " + door_.text())) << text;
}

TEST_F(TcpDials, ThePeerGaveNoAddress) { EXPECT_TRUE(has(reasonFor({}, {}), "no address")); }

}  // namespace
}  // namespace viaduct::tcp
