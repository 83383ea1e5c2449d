// The agent as its own peer: it is ready at once, needs no session, and is both ends of notes,
// marks, leases and transfers.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/bytes.h"
#include "support/text.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;
using testing::has;

Agent openMe(std::string backend, Settings settings = {}) {
  settings.name = "me";
  settings.backends = {std::move(backend)};
  settings.detect = 8h;  // no heartbeat wakes a thread
  auto agent = Agent::open(settings);
  EXPECT_TRUE(agent) << agent.error().text();
  return *std::move(agent);
}

Selection wholePin(const Pin& pin) {
  return {*Blocks::strided({.base = pin.info().address, .bytes = pin.info().bytes, .count = 1}),
          {}};
}

std::size_t socketsNow() {
  std::size_t sockets = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(file, gone).string().starts_with("socket:")) ++sockets;
  }
  return sockets;
}

TEST(OwnPeer, IsReadyAtOnceAndOpensNoSocket) {
  Agent agent = openMe("local");
  const auto sockets = socketsNow();
  const auto self = agent.self();
  ASSERT_TRUE(self) << self.error().text();
  EXPECT_EQ(self->state(), PeerState::kReady);
  EXPECT_TRUE(self->ready(0s));
  EXPECT_EQ(socketsNow(), sockets);
  const Pin memory = *agent.allocate(4096, {.label = "mine"});
  EXPECT_TRUE(self->waitPin("mine", 0s));
  ASSERT_EQ(self->ways().size(), 1U);
  EXPECT_EQ(self->ways().front().backend, "local");
  EXPECT_TRUE(self->ways().front().usable);
}

TEST(OwnPeer, IsOnePeerHoweverItIsNamed) {
  Agent agent = openMe("local", {.secret = "ours"});
  const Peer self = *agent.self();
  ASSERT_TRUE(agent.importCard(agent.exportCard()));
  ASSERT_TRUE(agent.self());
  EXPECT_EQ(agent.peer("me")->epoch(), 1U);
  const auto dialed = agent.connect(agent.card().addresses.front());
  ASSERT_TRUE(dialed);
  EXPECT_TRUE(dialed->ready(20s));
  EXPECT_EQ(agent.peers().size(), 1U);
  ASSERT_TRUE(dialed->note("to me"));
  EXPECT_EQ(agent.takeNote()->from, "me");
}

TEST(OwnPeer, HasTheNameOfAnotherAgentWithoutHarm) {
  Agent agent = openMe("local"), other = openMe("local");
  ASSERT_TRUE(agent.self() && other.self());
  const Peer peer = *agent.importCard(other.exportCard());
  ASSERT_TRUE(peer.ready(20s));
  ASSERT_TRUE(peer.note("hello"));
  EXPECT_EQ(other.waitNote(20s)->text(), "hello");
  EXPECT_FALSE(agent.takeNote());
}

TEST(OwnPeer, TakesNotesInTheirOrderUpToTheLimit) {
  Agent agent = openMe("local", {.note_backlog = 64 << 10});
  const Peer self = *agent.self();
  int sent = 0;
  Status last = self.note("0");
  while (last && sent < 10'000) last = self.note(std::to_string(++sent));
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Code::kBusy);
  EXPECT_EQ(last.error().remedy, "try again later");
  for (int i = 0; i < sent; ++i) EXPECT_EQ(agent.takeNote()->text(), std::to_string(i));
  EXPECT_FALSE(agent.takeNote());
  const auto until = Clock::now() + 20s;
  while (!(last = self.note("again")) && Clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(last);
  EXPECT_EQ(agent.takeNote()->text(), "again");
}

TEST(OwnPeer, ANoteWakesASleepingThread) {
  Agent agent = openMe("local");
  const Peer self = *agent.self();
  const auto begun = Clock::now();
  std::thread sleeper([&] { EXPECT_TRUE(agent.waitNote(60s)); });
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(self.note("wake up"));
  sleeper.join();
  EXPECT_LT(Clock::now() - begun, 50s) << "only its own deadline woke the thread";
}

TEST(OwnPeer, MarksArriveInTheStreamThatSendsThem) {
  Agent agent = openMe("local");
  const Peer self = *agent.self();
  const Pin from = *agent.allocate(4096), into = *agent.allocate(4096);
  auto transfer = agent.plan(OpKind::kWrite, self, wholePin(from), wholePin(into));
  ASSERT_TRUE(transfer && transfer->post({.mark = Mark{.stream = 7, .number = 1}}));
  ASSERT_TRUE(transfer->wait(20s));
  const auto stream = agent.openMarks(self, {.number = 7, .marks = 3});
  ASSERT_TRUE(stream) << stream.error().text();
  EXPECT_TRUE(stream->has(1));
  ASSERT_TRUE(stream->mark(2));
  EXPECT_EQ(stream->count(), 2U);
  stream->end({.code = Code::kCancelled, .operation = "test", .detail = "enough"});
  EXPECT_TRUE(stream->over(0s));
  EXPECT_EQ(stream->ended().error().detail, "enough");
}

TEST(OwnPeer, ReleasedMemoryRevokesAllItsLeases) {
  Agent agent = openMe("local");
  const Peer self = *agent.self();
  std::optional<Pin> lent = *agent.allocate(64 << 10);
  const auto blocks = *Blocks::strided({.base = lent->info().address, .bytes = 1024, .count = 64});
  std::vector<Lease> leases;
  std::vector<BorrowedLease> borrowed;
  for (std::uint32_t i = 0; i < 64; ++i) {
    leases.push_back(*agent.lease(self, {blocks, {i}}));
    if (i % 2 == 0) borrowed.push_back(*agent.borrow(self, leases.back().ticket()));
  }
  ASSERT_TRUE(lent->release());
  for (const Lease& lease : leases) EXPECT_EQ(lease.state(), LeaseState::kRevoked);
  for (const BorrowedLease& lease : borrowed) EXPECT_EQ(lease.state(), LeaseState::kRevoked);
  EXPECT_EQ(agent.statistics().lent.live + agent.statistics().borrowed.live, 0U);
}

TEST(OwnPeer, OverANetworkAloneCarriesNotesAndNoBytes) {
  Agent agent = openMe("tcp");
  const Peer self = *agent.self();
  ASSERT_TRUE(self.note("hello"));
  EXPECT_EQ(agent.takeNote()->text(), "hello");
  const Pin from = *agent.allocate(4096), into = *agent.allocate(4096);
  const auto transfer = agent.plan(OpKind::kWrite, self, wholePin(from), wholePin(into));
  ASSERT_FALSE(transfer);
  EXPECT_EQ(transfer.error().code, Code::kUnsupported);
  EXPECT_TRUE(has(transfer.error().cause, "no network reaches the agent's own memory"))
      << transfer.error().text();
  EXPECT_TRUE(has(transfer.error().remedy, "VIADUCT_BACKENDS"));
}

TEST(OwnPeer, IsThereAtTheNextCallIfDescriptorsWereShort) {
  Agent agent = openMe("fake", {.others = {{"VIADUCT_FAKE", "exhaust=1"}}});
  const auto refused = agent.self();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  const auto self = agent.self();
  ASSERT_TRUE(self) << self.error().text();
  EXPECT_EQ(self->state(), PeerState::kReady);
}

TEST(OwnPeer, CanBeForgottenAndComesBack) {
  Agent agent = openMe("local");
  const Peer self = *agent.self();
  const Pin from = *agent.allocate(4096), into = *agent.allocate(4096);
  auto transfer = agent.plan(OpKind::kWrite, self, wholePin(from), wholePin(into));
  ASSERT_TRUE(transfer && transfer->post() && transfer->wait(20s));
  self.forget();
  EXPECT_EQ(self.state(), PeerState::kGone);
  EXPECT_EQ(transfer->post().error().code, Code::kPeerLost);
  ASSERT_TRUE(agent.self());
  EXPECT_EQ(self.epoch(), 2U);
  EXPECT_TRUE(transfer->post() && transfer->wait(20s));
}

// Threads use the agent as its own peer in every way, until the agent closes beside them.
class OwnTraffic {
 public:
  OwnTraffic() {
    start([this] { sendNotes(); });
    start([this] { copy(); });
    start([this] { lend(); });
    start([this] { pin(); });
    start([this] { mark(); });
  }
  ~OwnTraffic() {
    std::this_thread::sleep_for(30ms);
    agent_.close();
    for (auto& thread : threads_) thread.join();
  }
  OwnTraffic(const OwnTraffic&) = delete;
  OwnTraffic& operator=(const OwnTraffic&) = delete;

 private:
  // Repeats the calls until one of them finds the agent closed.
  void start(std::function<void()> calls) {
    threads_.emplace_back([this, calls = std::move(calls)] {
      while (self_.ready(0s)) calls();
    });
  }
  void sendNotes() {
    if (self_.note("x")) static_cast<void>(agent_.waitNote(1s));
  }
  void copy() {
    auto transfer = agent_.plan(OpKind::kWrite, self_, wholePin(from_), wholePin(into_));
    if (transfer && transfer->post({.note = std::as_bytes(std::span("y", 1))})) {
      const Status ended = transfer->wait(20s);
      EXPECT_TRUE(ended || ended.error().code != Code::kTimeout) << ended.error().text();
    }
    static_cast<void>(agent_.takeNote());
  }
  void lend() {
    auto lease = agent_.lease(self_, wholePin(from_));
    if (!lease) return;
    auto borrowed = agent_.borrow(self_, lease->ticket());
    if (!borrowed) return;
    auto transfer = agent_.plan(OpKind::kRead, *borrowed, wholePin(kept_));
    if (!transfer || !transfer->post()) return;
    static_cast<void>(lease->revoke());
    static_cast<void>(transfer->wait(20s));
  }
  void pin() { static_cast<void>(agent_.allocate(4096, {.label = "fleeting"})); }
  void mark() {
    const auto stream = agent_.openMarks(self_, {.number = ++last_stream_, .marks = 2});
    if (stream) static_cast<void>(stream->mark(1));
  }

  Agent agent_ = openMe("local");
  const Peer self_ = *agent_.self();
  const Pin from_ = *agent_.allocate(2 << 20), into_ = *agent_.allocate(2 << 20),
            kept_ = *agent_.allocate(2 << 20);
  std::uint64_t last_stream_ = 0;
  std::vector<std::thread> threads_;
};

TEST(OwnPeer, ClosesBesideTraffic) {
  for (int round = 0; round < 5; ++round) const OwnTraffic traffic;
}

}  // namespace
}  // namespace viaduct
