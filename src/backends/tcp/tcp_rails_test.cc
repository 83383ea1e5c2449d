// Tests rails that lose their sockets while other rails keep theirs.
#include <sys/socket.h>

#include "backends/tcp/socket.h"
#include "backends/tcp/tcp_link.h"
#include "backends/tcp/tcp_testing.h"
#include "core/sink_testing.h"
#include "support/bytes.h"

namespace viaduct::tcp {
namespace {

using Phase = core::LinkState::Phase;

class TcpRailsFail : public TcpPair {
 protected:
  static constexpr std::size_t kBytes = std::size_t{12} << 20U;
  void SetUp() override {
    settings_[0].sockets = settings_[1].sockets = 2;
    open();
    pair_->pin(0, 0, here_.segment());
    pair_->pin(1, 0, there_.segment());
    ops_ = scattered(here_, there_, 9000, 4);
  }
  void cut(std::size_t side, std::size_t rail) { ::shutdown(socketOf(side, rail), SHUT_RDWR); }
  bool serves(std::size_t side, std::size_t i) { return link(side).servedBy(rail(side, i)); }
  void expectAsGoodAsNew() {
    ASSERT_TRUE(
        pair_->run([&] { return serves(0, 0) && serves(0, 1) && serves(1, 0) && serves(1, 1); }));
    for (const std::size_t i : {0U, 1U}) {
      testing::fillWith(there_.bytes, std::byte{0});
      const std::uint64_t number = ++last_number_;
      post(0, OpKind::kWrite, number, ops_, i);
      ASSERT_TRUE(finish(0, number, ops_.size()));
      EXPECT_EQ(ended(0, number).failed, 0U);
      EXPECT_EQ(here_.bytes, there_.bytes);
    }
  }

  Region here_{kBytes, 1}, there_{kBytes, 2};
  std::vector<core::Op> ops_;
  std::uint64_t last_number_ = 1000;
};

TEST_F(TcpRailsFail, ALostSocketDisablesItsRailAloneAndOpensAgain) {
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    const std::uint64_t number = kind == OpKind::kWrite ? 10 : 20;
    post(0, kind, number, ops_, 0);
    post(0, kind, number + 1, ops_, 1);
    for (int i = 0; i < 2; ++i) pair_->progress();
    cut(0, 1);
    ASSERT_TRUE(finish(0, number, ops_.size()));
    ASSERT_TRUE(finish(0, number + 1, ops_.size()));
    EXPECT_EQ(ended(0, number).failed, 0U);
    const Ended lost = ended(0, number + 1);
    ASSERT_GT(lost.failed, 0U);
    EXPECT_TRUE(lost.rail_lost);
    EXPECT_EQ(lost.why->code, Code::kPeerLost);
    EXPECT_EQ(link(0).state().phase, Phase::kReady);
    EXPECT_EQ(link(1).state().phase, Phase::kReady);
    expectAsGoodAsNew();
    if (HasFatalFailure()) return;
  }
}

TEST_F(TcpRailsFail, OpsOfALostSocketWaitUntilThePeerHasClosed) {
  post(0, OpKind::kWrite, 3, ops_, 1);
  cut(0, 1);
  turnRails(0, 3);
  EXPECT_FALSE(serves(0, 1));
  EXPECT_TRUE(serves(0, 0));
  EXPECT_EQ(ended(0, 3).failed, 0U) << "the peer may still be writing what it has received";
  // A new post on the rail fails at once, because nothing of it is in flight.
  post(0, OpKind::kWrite, 4, ops_, 1);
  turnRails(0, 1);
  EXPECT_EQ(ended(0, 4).failed, ops_.size());
  EXPECT_TRUE(ended(0, 4).rail_lost);
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  // Now the peer has closed its end, so nobody writes to the memory.
  testing::fillWith(there_.bytes, std::byte{0x22});
  for (int i = 0; i < 50; ++i) pair_->progress();
  EXPECT_TRUE(testing::allAre(there_.bytes, std::byte{0x22}));
  expectAsGoodAsNew();
}

// A poll may run beside polls of other rails, so it neither closes nor tells the peer.
TEST_F(TcpRailsFail, APollLeavesALostSocketForTheThreadThatHandlesEvents) {
  post(0, OpKind::kWrite, 3, ops_, 1);
  cut(0, 1);
  rail(0, 1).poll(pair_->done[0]);
  EXPECT_TRUE(rail(0, 1).hasEvents());
  EXPECT_TRUE(rail(0, 1).busy());
  EXPECT_TRUE(pair_->ends[0].sent.empty());
  rail(0, 1).handleEvents(pair_->done[0]);
  EXPECT_FALSE(rail(0, 1).hasEvents());
  EXPECT_EQ(pair_->ends[0].sent.size(), 1U);
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  expectAsGoodAsNew();
}

TEST_F(TcpRailsFail, BothEndsMayLoseASocketAtOnce) {
  post(0, OpKind::kWrite, 3, ops_, 1);
  const auto back = scattered(there_, here_, 9000, 5);
  post(1, OpKind::kRead, 4, back, 1);
  cut(0, 1);
  cut(1, 1);
  turnRails(0, 3);
  turnRails(1, 3);
  EXPECT_FALSE(serves(0, 1) || serves(1, 1));
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  expectAsGoodAsNew();
}

TEST_F(TcpRailsFail, ACancelledTransferOnALostSocketDoesNotCountAsRailLost) {
  post(0, OpKind::kWrite, 3, ops_, 1);
  rail(0, 1).cancel(core::testing::sinkOf(3));
  cut(0, 1);
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  EXPECT_FALSE(ended(0, 3).rail_lost);
  EXPECT_EQ(ended(0, 3).why->code, Code::kCancelled);
}

TEST_F(TcpRailsFail, WithItsLastSocketTheLinkIsLost) {
  post(0, OpKind::kWrite, 3, ops_, 0);
  post(0, OpKind::kWrite, 4, ops_, 1);
  cut(0, 0);
  cut(0, 1);
  ASSERT_TRUE(pair_->run([&] {
    return link(0).state().phase == Phase::kUnusable && link(1).state().phase == Phase::kUnusable;
  }));
  ASSERT_TRUE(finish(0, 3, ops_.size()));
  ASSERT_TRUE(finish(0, 4, ops_.size()));
}

TEST_F(TcpRailsFail, GarbageEndsTheLinkAndNotTheRail) {
  const int fd = socketOf(0, 1);
  ASSERT_EQ(::send(fd, "this is not a frame, and long enough", 36, MSG_NOSIGNAL), 36);
  ASSERT_TRUE(pair_->run([&] { return link(1).state().phase == Phase::kUnusable; }));
}

TEST_F(TcpRailsFail, ClosingWhileARailIsDownReturnsAllOps) {
  post(0, OpKind::kWrite, 3, ops_, 1);
  cut(0, 1);
  turnRails(0, 3);
  link(0).close(pair_->done[0]);
  EXPECT_EQ(ended(0, 3).moved + ended(0, 3).failed, ops_.size());
  for (int i = 0; i < 50; ++i) pair_->progress(std::chrono::milliseconds(10));
  EXPECT_EQ(ended(0, 3).moved + ended(0, 3).failed, ops_.size());
}

// A peer may report lives as lost that have not begun. That must not leave a timer behind that
// calls a destroyed link.
TEST_F(TcpRailsFail, APeerCannotMakeTheLinkDialTwiceAtOnce) {
  for (std::uint32_t life = 0; life < 5; ++life) {
    base::Writer out;
    out.put(std::uint8_t{2}).put(1U).put(2U).put(life).text("because");
    link(0).receive(out.bytes(), {});
  }
  EXPECT_FALSE(serves(0, 1));
  pair_->ends[0].link->close(pair_->done[0]);
  pair_->ends[0].link.reset();
  base::Poller::Events events;
  for (int i = 0; i < 700; ++i) {
    clock_.advance(std::chrono::milliseconds(1));
    poller_->handle(events, poller_->block(events, poller_->now()), poller_->now());
  }
}

TEST(TcpAddresses, OnAnotherRailsNetworkAreNotDialed) {
  const auto at = [](const char* text) { return listenAddresses(text)->front(); };
  const auto interface = [&](const char* name, const char* address) {
    LocalInterface out{name, at(address), at("255.255.255.0:0")};
    return out;
  };
  const std::vector here{interface("rail0", "10.77.0.1:0"), interface("rail1", "10.77.1.1:0")};
  const std::vector rails{RailSource{"10.77.0.1", at("10.77.0.1:0"), ""},
                          RailSource{"10.77.1.1", at("10.77.1.1:0"), ""}};
  const std::vector there{at("10.77.0.2:0"), at("10.99.0.2:0")};
  const auto texts = [&](const RailSource& from, std::span<const RailSource> all) {
    std::string out;
    for (const base::SocketAddress& one : ownOf(from, there, all, here)) out += one.text() + " ";
    return out;
  };
  EXPECT_EQ(texts(rails[0], rails), "10.77.0.2:0 10.99.0.2:0 ");
  EXPECT_EQ(texts(rails[1], rails), "10.99.0.2:0 ") << "the first leads over rail0";
  // If a rail is the only one, it dials all addresses.
  EXPECT_EQ(texts(rails[1], std::span(rails).subspan(1)), "10.77.0.2:0 10.99.0.2:0 ");
}

}  // namespace
}  // namespace viaduct::tcp
